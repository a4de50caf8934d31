"""The log below one service, in memory: what a worker on a broker has, for a test to drive."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta

from penstock.backbone.client.logrecord import Offsets, Partition, RawRecord
from penstock.backbone.log.membership import Listener
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.errors import ConfigurationError
from penstock.testing.memorylog import MemoryDelivery, MemoryLog

__all__ = ["MemoryMember", "MemoryServiceLog"]

_POLL_SECONDS = 0.005


class MemoryMember:
    """The only member of a group: it has all partitions, until a test takes some away.

    What a test says with :meth:`give`, :meth:`revoke` and :meth:`lose` is told to the listener
    inside the next ``consume``, as a broker does.
    """

    def __init__(
        self, log: MemoryLog, partitions: Collection[Partition], *, group: str, listener: Listener
    ) -> None:
        self.unreachable: str | None = None
        """Why the log cannot be reached; None: it can."""
        self.paused: set[Partition] = set()
        self._log = log
        self._group = group
        self._listener = listener
        self._positions: dict[Partition, int] = {}
        self._news: list[Callable[[], None]] = []
        self._woken = threading.Event()
        self.give(partitions)

    def give(self, partitions: Collection[Partition]) -> None:
        """Give partitions to this member."""
        self._tell(lambda: self._assign(partitions))

    def revoke(self, partitions: Collection[Partition]) -> None:
        """Take partitions away; the listener may commit what it has done."""
        self._tell(lambda: self._drop(partitions, self._listener.on_revoke))

    def lose(self, partitions: Collection[Partition]) -> None:
        """Take partitions away that another member has already."""
        self._tell(lambda: self._drop(partitions, self._listener.on_lost))

    def consume(self, count: int, timeout: float) -> Sequence[RawRecord]:
        """Return up to ``count`` records as soon as there is one; none after ``timeout`` seconds.

        Records are there or not when it is called: it waits for news of partitions alone.
        """
        self._woken.clear()
        while self._news:
            self._news.pop(0)()
        found: list[RawRecord] = []
        for partition, position in list(self._positions.items()):
            if partition not in self.paused and len(found) < count:
                came = self._log.read(partition, position)[: count - len(found)]
                self._positions[partition] = position + len(came)
                found += came
        if not found and timeout > 0:
            self._woken.wait(min(timeout, _POLL_SECONDS))
        return found

    def pause(self, partitions: Collection[Partition], /) -> None:
        """Hand over no records of these partitions."""
        self.paused |= set(partitions)

    def resume(self, partitions: Collection[Partition], /) -> None:
        """Hand over records of these partitions again."""
        self.paused -= set(partitions)

    def seek(self, offsets: Offsets, /) -> None:
        """Go on reading from these offsets."""
        self._positions |= offsets

    def positions(self) -> Offsets:
        """Return for each partition the offset that is read next."""
        return dict(self._positions)

    def at_end(self, partition: Partition, offset: int, /) -> bool:
        """Return whether a partition ends at this offset."""
        return not self._log.read(partition, offset)

    def trouble(self) -> str | None:
        """Return why the log cannot be reached, None if it can."""
        return self.unreachable

    def close(self) -> None:
        """Tell the listener that the partitions are revoked, and leave the group."""
        if self._positions:
            self._drop(list(self._positions), self._listener.on_revoke)

    def _tell(self, news: Callable[[], None]) -> None:
        self._news.append(news)
        self._woken.set()

    def _assign(self, partitions: Collection[Partition]) -> None:
        self._listener.before_assign(partitions)
        committed = self._log.committed(self._group)
        starts = {partition: committed.get(partition, 0) for partition in partitions}
        self._positions |= starts
        self._listener.on_unread(starts.keys() - committed.keys())
        self._listener.on_assign(starts)

    def _drop(
        self, partitions: Collection[Partition], tell: Callable[[Collection[Partition]], None]
    ) -> None:
        tell(partitions)
        for partition in partitions:
            self._positions.pop(partition, None)
            self.paused.discard(partition)


class MemoryServiceLog:
    """The log below one service, in memory. ``at`` hears of each step of its deliveries."""

    def __init__(
        self,
        graph: Graph,
        service: Service,
        log: MemoryLog,
        *,
        at: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.member: MemoryMember | None = None
        self.log = log
        self._service = service
        self._group = f"{graph.app}.{service.name}"
        self._at = at

    def join(
        self,
        listener: Listener,
        *,
        poll_interval: timedelta,  # noqa: ARG002 - nobody is put out of a group in memory
    ) -> MemoryMember:
        """Return a new member, which is given all partitions."""
        partitions = [
            partition
            for data in self._service.reads
            for partition in self.log.partitions(data.topic.name)
        ]
        self.member = MemoryMember(self.log, partitions, group=self._group, listener=listener)
        return self.member

    def at_end(self, partition: Partition, offset: int) -> bool:
        """Return whether a partition ends at this offset."""
        return not self.log.read(partition, offset)

    def drained(self, partition: Partition, offset: int) -> bool:
        """Return whether there is no record behind an offset."""
        return not self.log.read(partition, offset)

    def deliver(self, task: str) -> MemoryDelivery:  # noqa: ARG002 - nobody is fenced in memory
        """Make the delivery of a task."""
        return MemoryDelivery(
            self.log, group=self._group, delivery=self._service.delivery, at=self._at
        )

    def identity(self, topic: str) -> str:  # noqa: ARG002 - topics in memory are made once
        """Return what tells a topic from a later one of the same name."""
        return ""

    def shapes(self, topics: Collection[str]) -> Mapping[str, tuple[str, int]]:
        """Return the identity and the number of partitions of topics."""
        return {topic: ("", len(self.log.partitions(topic))) for topic in topics}

    def ends(
        self,
        topic: str,
        *,
        committed: bool = False,  # noqa: ARG002 - everything in memory is committed
    ) -> Mapping[int, tuple[int, int]]:
        """Return for each partition where it begins and where it ends."""
        return {
            number: (0, len(self.log.read((topic, number))))
            for _, number in self.log.partitions(topic)
        }

    def lag(self, positions: Offsets) -> int | None:
        """Return how many offsets there are behind positions."""
        return sum(len(self.log.read(at, offset)) for at, offset in positions.items())

    def batches(
        self,
        topic: str,
        *,
        starts: Mapping[int, int],
        ends: Mapping[int, int] | None,
        stop: threading.Event,
    ) -> Iterator[Sequence[RawRecord]]:
        """Yield the records of partitions, one at a time, until ``stop`` is set."""
        positions = dict(starts)
        while not stop.is_set():
            came = False
            for number, position in positions.items():
                found = self.log.read((topic, number), position)
                if ends is not None:
                    found = found[: max(0, ends[number] - position)]
                for raw in found:
                    came = True
                    positions[number] = raw.offset() + 1
                    self._at("restore")
                    yield [raw]
            if ends is not None and all(positions[each] >= ends[each] for each in positions):
                return
            if ends is not None and not came:
                raise ConfigurationError(f"{topic} ends before {ends}", code="offset.beyond-end")
            if not came:
                stop.wait(_POLL_SECONDS)
