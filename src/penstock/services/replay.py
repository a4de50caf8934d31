"""One task of a service over records of the past, in a time of its own.

The clock of a replay follows the timestamps of the records, so that what goes by it (timers, times
to live, triggers, silent streams) happens between the same records as it would have then. Only a
retry waits for real: whoever was asked has to come back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from penstock.backbone.client.logrecord import Offsets, Partition, RawRecord
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.instants import EPOCH
from penstock.core.status.report import Counts
from penstock.services.state.wholetables import WholeTables
from penstock.services.step.outputs import Send
from penstock.services.task.task import Task

__all__ = ["REPLAY_BATCH", "Replay", "ReplayDelivery"]

REPLAY_BATCH = 2000
"""So many records are handled at most before what they gave is waited for."""
_MOMENT = timedelta(seconds=1)
"""Records that were written within this come together, as they do when a worker asks for them."""


class ReplayDelivery:
    """Gives what a task writes to topics of the replay; its changelog goes nowhere."""

    def __init__(
        self, send: Send, *, names: Mapping[str, str], flush: Callable[[], None] = lambda: None
    ) -> None:
        self._send = send
        self._names = names
        self._flush = flush

    def send(self, topic: str, /, **record: Any) -> None:
        """Send a record to the topic of the replay that stands for its own."""
        self._send(self._names[topic], **record)

    def keep(self, topic: str, /, **record: Any) -> None:
        """Keep nothing of the changelog: a replay begins with nothing, and leaves no state."""

    def begin(self) -> None:
        """Do nothing: records go out as they come."""

    def take(self, offsets: Offsets) -> bool:  # noqa: ARG002 - a replay has no group
        """Return False: a replay leaves no position behind."""
        return False

    def commit(self, offsets: Offsets) -> Callable[[], None]:  # noqa: ARG002 - as above
        """Wait until what was sent has arrived."""
        self._flush()
        return lambda: None

    @property
    def in_doubt(self) -> bool:
        """Return False: a replay that fails is begun anew under another label."""
        return False

    def close(self) -> None:
        """Do nothing: the producer belongs to the replay."""


class _Input:
    """The records of one partition, the next of them in sight."""

    def __init__(self, records: Iterable[RawRecord]) -> None:
        self._records = iter(records)
        self.head = next(self._records, None)

    @property
    def at(self) -> datetime:
        """Return when the next record was written."""
        return EPOCH if self.head is None else _written_at(self.head)

    def take(self, *, until: datetime) -> Iterator[RawRecord]:
        """Yield the records that were written up to an instant."""
        while (found := self.head) is not None and _written_at(found) <= until:
            self.head = next(self._records, None)
            yield found


class Replay:
    """Runs one task; its partitions are read together, in the order of their timestamps.

    State begins empty; broadcast tables are as they are now. ``wait`` is given the seconds that a
    retry is put off.
    """

    def __init__(
        self,
        graph: Graph,
        service: Service,
        inputs: Mapping[Partition, Iterable[RawRecord]],
        *,
        delivery: ReplayDelivery,
        wait: Callable[[float], None],
        progress: Callable[[int], None] = lambda _: None,
        tables: WholeTables | None = None,
    ) -> None:
        self._inputs = {partition: _Input(records) for partition, records in inputs.items()}
        self._now_at = EPOCH
        self._wait = wait
        self._progress = progress
        self._handled = 0
        self._taken: dict[Partition, int] = {}
        """Behind the last record of each partition that was given to the task."""
        self._task = Task(
            graph,
            service,
            number=min(number for _, number in inputs),
            starts=dict.fromkeys(inputs, 0),
            delivery=delivery,
            clock=lambda: self._now_at,
            at_end=lambda partition, offset: not self._has_come(partition, offset),
            drained=lambda partition, offset: not self._has_come(partition, offset),
            tables=tables,
        )

    def run(self, *, end_at: datetime | None = None) -> Counts:
        """Handle all records, then what the clock makes due up to ``end_at``; return the counts."""
        task = self._task
        try:
            task.open()
            while (partition := self._next()) is not None:
                self._go_to(self._inputs[partition].at)
                self._handle(partition, self._batch(partition))
            while (turn_at := task.turn_at()) is not None:  # nothing else is to come
                self._go_to(max(turn_at, self._now_at))
            self._go_to(self._now_at if end_at is None else end_at)
            self._commit()
            task.step.close()
        finally:
            task.close()
        return task.step.tally.committed()

    def _next(self) -> Partition | None:
        """Return the partition whose next record was written first."""
        waiting = [(each.at, at) for at, each in self._inputs.items() if each.head is not None]
        return min(waiting, default=(None, None))[1]

    def _batch(self, partition: Partition) -> list[RawRecord]:
        """Take records that came together, none of them written after another input's next one."""
        chosen = self._inputs[partition]
        ends = [at.at for at in self._inputs.values() if at is not chosen and at.head is not None]
        if (wakes_at := self._task.wakes_at()) is not None:
            ends.append(wakes_at)
        until = max(chosen.at, min([max(chosen.at, self._now_at) + _MOMENT, *ends]))
        batch: list[RawRecord] = []
        for record in chosen.take(until=until):
            batch.append(record)
            if len(batch) >= REPLAY_BATCH:
                break
        return batch

    def _handle(self, partition: Partition, records: list[RawRecord]) -> None:
        """Handle records, some of them again and again where they are to be tried again."""
        self._taken[partition] = (records[-1].offset() or 0) + 1
        while records:
            self._now_at = max(self._now_at, _written_at(records[-1]))
            done = self._task.handle(partition, records)
            records = records[done:]
            self._handled += done
            if self._task.step.tally.pending >= REPLAY_BATCH:
                self._commit()
            if records:
                self._go_to(max(self._task.holds.get(partition, self._now_at), self._now_at))

    def _go_to(self, instant: datetime) -> None:
        """Let time pass, and everything happen on the way that is due."""
        task = self._task
        while (wakes_at := task.wakes_at()) is not None and wakes_at <= instant:
            if task.step.retries and wakes_at > self._now_at:
                self._commit()
                self._wait((wakes_at - self._now_at).total_seconds())
            self._now_at = max(self._now_at, wakes_at)
            if not task.release() and not task.tick() and task.wakes_at() == wakes_at:
                break
        self._now_at = max(self._now_at, instant)

    def _commit(self) -> None:
        self._task.commit()
        self._progress(self._handled)

    def _has_come(self, partition: Partition, offset: int) -> bool:
        """Return whether a record was written by now that is not handled yet."""
        if offset < self._taken.get(partition, 0):
            return True  # the task has it in hand
        found = self._inputs[partition]
        return found.head is not None and found.at <= self._now_at


def _written_at(record: RawRecord) -> datetime:
    _, milliseconds = record.timestamp()
    return EPOCH + timedelta(milliseconds=max(0, milliseconds))
