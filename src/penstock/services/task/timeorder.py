"""Records of several partitions in the order of their times, as far as they are there.

A task that reads several topics gets them in runs of one partition each. Here they wait until each
partition has a record, or has none: then the one with the earliest time is next. A partition that
is at its end is waited for as long as was declared; one that is not, a little: its records are on
their way. Of the same time, rows of tables come first: the time of the log is in milliseconds, and
a bulk load writes hundreds of records in one. Pure: the clock is passed.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

from penstock.backbone.client.logrecord import Partition, RawRecord

__all__ = ["LONGEST_WAIT", "MOST_WAITING", "TimeOrder"]

MOST_WAITING = 10_000
"""So many records of one partition wait at most; the others are read again later."""
LONGEST_WAIT = 5_000_000
"""So many microseconds a partition is waited for whose records are on their way."""

TimeOf = Callable[[RawRecord], int]
"""Reads the time of a record."""


class TimeOrder:
    """Puts the records of a task's partitions into the order of their times.

    ``tables`` are the topics whose records come before others of the same time. ``waits`` is in
    microseconds. ``drained`` says whether a partition has no record behind an offset, as far as
    anybody knows.
    """

    def __init__(
        self,
        positions: Mapping[Partition, int],
        times: Mapping[str, TimeOf],
        *,
        waits: int,
        tables: Collection[str] = (),
        drained: Callable[[Partition, int], bool],
    ) -> None:
        self._queues: dict[Partition, deque[tuple[int, RawRecord]]] = {
            partition: deque() for partition in positions
        }
        self._places = {
            (topic, number): (topic not in tables, topic, number) for topic, number in positions
        }
        """How partitions are told apart whose next records are of the same time."""
        self._next = dict(positions)
        self._times = times
        self._waits = waits
        self._drained = drained
        self._since: int | None = None
        self._until: int | None = None

    def next_offset(self, partition: Partition) -> int:
        """Return the offset of the next record of a partition that is to come."""
        return self._next[partition]

    def holds(self, partition: Partition) -> bool:
        """Return whether records of a partition wait."""
        return bool(self._queues[partition])

    def full(self, partition: Partition) -> bool:
        """Return whether reading on is not worth it: too many records of a partition wait."""
        return len(self._queues[partition]) > MOST_WAITING // 2

    def put(self, partition: Partition, records: Sequence[RawRecord]) -> int:
        """Let records wait; return how many of them could, those that came before included."""
        queue, time_of = self._queues[partition], self._times[partition[0]]
        expected = self._next[partition]
        if not queue:
            self._since = None
        for number, raw in enumerate(records):
            offset = raw.offset() or 0
            if offset < expected:
                continue
            if len(queue) >= MOST_WAITING:
                return number
            queue.append((time_of(raw), raw))
            self._next[partition] = offset + 1
        return len(records)

    def go_back(self, partition: Partition, offset: int) -> None:
        """Let no record of a partition wait any more: they come again from an offset on."""
        self._queues[partition].clear()
        self._next[partition] = offset

    def take(self, clock: int) -> tuple[Partition, list[RawRecord]] | None:
        """Return the records that are next, of one partition; None: none are, or not yet."""
        first = second = None
        missing = False
        for at, queue in self._queues.items():
            if not queue:
                missing = True
                continue
            head = (queue[0][0], self._places[at], at)
            if first is None or head < first:
                first, second = head, first
            elif second is None or head < second:
                second = head
        self._until = None
        if first is None or (missing and self._waiting(clock)):
            return None
        self._since = None
        place, partition = first[1:]
        queue = self._queues[partition]
        if second is None:
            run = [raw for _, raw in queue]
            queue.clear()
            return partition, run
        limit = second[:2]
        run = [queue.popleft()[1]]
        while queue and (queue[0][0], place) < limit:
            run.append(queue.popleft()[1])
        return partition, run

    def take_runs(self, clock: int, *, most: int) -> list[tuple[Partition, list[RawRecord]]]:
        """Return about ``most`` records that are next, as runs of one partition each."""
        runs: list[tuple[Partition, list[RawRecord]]] = []
        count = 0
        while count < most and (run := self.take(clock)) is not None:
            runs.append(run)
            count += len(run[1])
        return runs

    def skip_to(self, partition: Partition, offset: int) -> None:
        """Hear that there are no records before an offset, where none wait."""
        self._next[partition] = max(offset, self._next[partition])

    def wakes(self) -> int | None:
        """Return the clock at which :meth:`take` may have something; None: when records come."""
        return self._until

    def _waiting(self, clock: int) -> bool:
        """Return whether a partition without records is waited for."""
        longest = 0
        for partition, queue in self._queues.items():
            if not queue:
                ended = self._drained(partition, self._next[partition])
                longest = max(longest, self._waits if ended else LONGEST_WAIT)
        if longest == 0:
            return False
        if self._since is None:
            self._since = clock
        self._until = self._since + longest
        return clock < self._until
