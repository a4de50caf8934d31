"""A log in memory: topics with partitions and offsets, and groups with committed offsets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.core.graph.parts import Delivery
from penstock.core.partitioner import partition_of
from penstock.core.topic import Partitioning, TopicSpec
from penstock.services.step.step import Clock

__all__ = ["MemoryDelivery", "MemoryLog", "MemoryRecord"]

_CREATE_TIME = 1


class MemoryRecord:
    """A record of the log, with the same calls as the Kafka client's."""

    __slots__ = ("_at", "_headers", "_key", "_offset", "_partition", "_topic", "_value")

    def __init__(
        self,
        place: Partition,
        offset: int,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        written_at: datetime,
    ) -> None:
        self._topic, self._partition = place
        self._offset = offset
        self._key = key
        self._value = value
        self._headers = tuple(headers)
        self._at = written_at

    def topic(self) -> str:
        """Return the topic."""
        return self._topic

    def partition(self) -> int:
        """Return the number of the partition."""
        return self._partition

    def offset(self) -> int:
        """Return the offset in the partition."""
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of the timestamp and milliseconds since the epoch."""
        return _CREATE_TIME, round(self._at.timestamp() * 1000)

    def key(self) -> bytes | None:
        """Return the key."""
        return self._key

    def value(self) -> bytes | None:
        """Return the value."""
        return self._value

    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """Return the headers."""
        return self._headers


class MemoryLog:
    """Keeps the records of each partition, and the committed offsets of each group."""

    def __init__(self, topics: Iterable[TopicSpec], *, clock: Clock) -> None:
        self._records: dict[str, list[list[MemoryRecord]]] = {
            spec.name: [[] for _ in range(spec.partitions)] for spec in topics
        }
        self._turn = dict.fromkeys(self._records, 0)
        self._committed: dict[str, dict[Partition, int]] = {}
        self._clock = clock

    def partitions(self, topic: str) -> list[Partition]:
        """Return the partitions of a topic."""
        return [(topic, number) for number in range(len(self._records[topic]))]

    def append(
        self,
        topic: str,
        /,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | Partitioning | None = None,
        written_at: datetime | None = None,
    ) -> None:
        """Append a record to this partition, to that of its key, or to the next in turn."""
        logs = self._records[topic]
        if isinstance(partition, int):
            number = partition
        elif key is None or partition == "round_robin":
            number = self._turn[topic] % len(logs)
            self._turn[topic] += 1
        else:
            number = partition_of(key, len(logs))
        log = logs[number]
        log.append(
            MemoryRecord(
                (topic, number),
                len(log),
                key=key,
                value=value,
                headers=headers,
                written_at=written_at or self._clock(),
            )
        )

    def read(self, partition: Partition, start: int = 0) -> list[MemoryRecord]:
        """Return the records of a partition from an offset on."""
        topic, number = partition
        return self._records[topic][number][start:]

    def commit(self, group: str, offsets: Offsets) -> None:
        """Commit the offsets of a group."""
        self._committed.setdefault(group, {}).update(offsets)

    def forget(self, group: str) -> None:
        """Forget the offsets of a group, as a cluster does after its ``offsets.retention``."""
        self._committed.pop(group, None)

    def committed(self, group: str) -> Mapping[Partition, int]:
        """Return the committed offsets of a group; 0 for partitions without one."""
        return self._committed.get(group, {})


class MemoryDelivery:
    """A task's way to the log.

    Exactly once: outputs stand on the log, and the group moves, at the commit and together.
    Otherwise outputs stand there at once; the group moves at the commit, so that they come again
    when the task is thrown away, or, at most once, before its records are handled.
    """

    def __init__(
        self,
        log: MemoryLog,
        *,
        group: str,
        delivery: Delivery = "exactly_once",
        at: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._at = at
        self._group = group
        self._delivery = delivery
        self._pending: list[Callable[[], None]] = []

    def send(
        self,
        topic: str,
        /,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | Partitioning | None = None,
    ) -> None:
        """Append a record, now or at the commit."""
        self._at("send")
        append = partial(
            self._log.append, topic, key=key, value=value, headers=headers, partition=partition
        )
        if self._delivery == "exactly_once":
            self._pending.append(append)
        else:
            append()

    def keep(
        self,
        topic: str,
        /,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | Partitioning | None = None,
    ) -> None:
        """Append a record of the changelog at the commit, with which the group moves."""
        self._at("send")
        self._pending.append(
            partial(
                self._log.append, topic, key=key, value=value, headers=headers, partition=partition
            )
        )

    def begin(self) -> None:
        """Begin with nothing."""
        self._pending.clear()

    def take(self, offsets: Offsets) -> bool:
        """Move the group before the records are handled, where that is the promise."""
        if self._delivery != "at_most_once":
            return False
        self._log.commit(self._group, offsets)
        return True

    def commit(self, offsets: Offsets) -> Callable[[], None]:
        """Append what waits and move the group; there is nothing to wait for."""
        self._at("commit")
        for append in self._pending:
            append()
        self._pending.clear()
        self._log.commit(self._group, offsets)
        return lambda: self._at("committed")

    def mark(self, topic: str, *, key: bytes, value: bytes, partition: int) -> None:
        """Append one record at once."""
        self._log.append(topic, key=key, value=value, partition=partition)

    @property
    def in_doubt(self) -> bool:
        """Return False: a commit in memory cannot fail."""
        return False

    def close(self) -> None:
        """Forget what waits."""
        self._pending.clear()
