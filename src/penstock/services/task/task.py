"""One task of a service: the input partitions of one number, their state, their outputs.

A task knows nothing of Kafka. What makes its work durable is a :class:`Delivery`: transactions or
an idempotent producer on a broker, a list in the test driver.

Long because it is all that may happen to a task between its beginning and its end: what keeps its
positions true is not to be cut in two.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import inf
from operator import length_hint
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from penstock.backbone.client.logrecord import Offsets, Partition, RawRecord
from penstock.core.graph.data import Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.graph.signature import is_async
from penstock.core.instants import EPOCH, MICROSECOND, instant, micros
from penstock.errors import TransientError
from penstock.services.state.committed import Committed
from penstock.services.state.notes import POSITIONS_KEY
from penstock.services.state.positions import (
    Input,
    dump_positions,
    find_positions,
    says_offsets_first,
)
from penstock.services.state.wholetables import WholeTables
from penstock.services.step.factory import make_step
from penstock.services.step.operators import OperatorStep
from penstock.services.step.outputs import Send
from penstock.services.step.step import Clock
from penstock.services.task.timeorder import TimeOrder
from penstock.services.task.times import times_of

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["Delivery", "Task", "task_name", "transactional_id"]


MOST_MERGED = 2_000
"""About so many records of several partitions are one moment of an operator at most."""
_FULL = timedelta(milliseconds=100)
"""When a partition is read on that has as many records as may wait for their turn."""


class Delivery(Protocol):
    """Makes the outputs, the changelog and the progress of one task durable."""

    @property
    def send(self) -> Send:
        """Return what takes the records of the current commit."""

    @property
    def keep(self) -> Send:
        """Return what takes the changelog of the current commit, after everything else."""

    def begin(self) -> None:
        """Begin what the next commit ends."""

    def take(self, offsets: Offsets) -> bool:
        """Hear which offsets are about to be handled; True: they are committed already."""

    def commit(self, offsets: Offsets) -> Callable[[], None]:
        """Begin to make everything sent since ``begin`` durable; return what waits until it is.

        The offsets are those to go on from. Whatever either raises, the task is thrown away: its
        records since the last commit are read again by the next one.
        """

    @property
    def in_doubt(self) -> bool:
        """Return whether a commit that failed may have happened all the same."""

    def close(self) -> None:
        """Give up what is not committed."""


def task_name(service: Service, partition: Partition) -> str:
    """Return the name of the task that a partition belongs to.

    State needs the partitions of one number together, and the group gives them together. Without
    state every partition of several inputs goes its own way, so each is a task of its own: two
    workers must never share one. A colon is in no topic's name.
    """
    topic, number = partition
    alone = service.keeps_state or service.time_order is not None or len(service.reads) == 1
    return str(number) if alone else f"{topic}:{number}"


def transactional_id(group: str, task: str) -> str:
    """Return the id under which a task of a group commits, which no task of another group has.

    Names have dots in them, and no colon: a service ``s`` that reads ``x.y`` must not be taken for
    a service ``s.x`` that reads ``y``.
    """
    return f"{group}.{task}" if task.isdecimal() else f"{group}:{task}"


class Task:
    """Handles records in order and commits: outputs, changelog, dead letters and offsets at once.

    ``positions`` holds the next offset to handle of each of its partitions, ``committed`` where it
    would begin again. ``at_end`` says whether an offset is the end of its partition. After any
    exception the task must be closed and made anew: from ``committed``, unless it is ``in_doubt``.
    """

    def __init__(
        self,
        graph: Graph,
        service: Service,
        *,
        number: int,
        starts: Offsets,
        delivery: Delivery,
        clock: Clock,
        shelf: "Shelf | None" = None,
        at_end: Callable[[Partition, int], bool] = lambda _, __: True,
        drained: Callable[[Partition, int], bool] = lambda _, __: True,
        tables: WholeTables | None = None,
    ) -> None:
        self.step = make_step(
            graph, service, clock=clock, shelf=shelf, waits=self._waits, tables=tables
        )
        self._at_end = at_end
        self._drained = drained
        self._service = service
        self._order: TimeOrder | None = None
        """Where several inputs are read in the order of time: what waits for its turn."""
        self._unordered = False
        """Whether something came that was not put into order yet."""
        step = self.step
        self._merging = step if isinstance(step, OperatorStep) and step.merges else None
        """What takes records of several partitions at once."""
        self.shelf = shelf
        self.reading = Committed(self.step.states.readable, clock=clock, shelf=shelf)
        """Its committed state, for other threads to read."""
        self.positions = dict(starts)
        self.committed = dict(starts)
        self.number = number
        self._clock = clock
        self._delivery = delivery
        self._changelog = graph.changelog(service).name
        self.logs: tuple[str, ...] = ()
        """The topics that its state is restored from, its changelog first; none without state."""
        if service.keeps_state:
            self.logs = (self._changelog, *self.step.states.tables)
        self._tables = [(topic, number) for topic in self.logs[1:]]
        self._group = f"{graph.app}.{service.name}"
        self._owner = f"{graph.app}/{service.name}"
        self._promise = service.delivery
        self._inputs: Mapping[str, Input] = {}
        self._unsaid = False
        """Whether the group is to move before the work, and the state does not say so yet."""
        self.resumed: dict[Partition, int] = {}
        """Where it went on from its state's own positions, the group having none any more."""
        self._begun = False
        self._ticked = False
        self._broken = False
        self.holds: dict[Partition, datetime] = {}
        """Until when partitions wait whose next record is to be tried again."""
        self._end: Callable[[], None] | None = None
        self._moved: dict[Partition, int] = {}
        self._in_hand: tuple[Sequence[RawRecord], Iterator[RawRecord]] | None = None
        self._one_by_one = not service.declared and not is_async(service.function)

    @property
    def uncommitted(self) -> int:
        """Return how many records a commit would make visible, the changelog's not counted."""
        return self.step.tally.written + self.step.tally.dead_lettered

    @property
    def dirty(self) -> bool:
        """Return whether there is anything to commit."""
        return self._ticked or bool(self._moved)

    @property
    def in_doubt(self) -> bool:
        """Return whether its last commit failed and may have happened all the same."""
        return self._delivery.in_doubt

    def open(self) -> None:
        """Begin, with the state restored."""
        self.step.open(self.number)
        if self._service.time_order is not None:
            self._order = TimeOrder(
                self.positions,
                times_of(self._service),
                waits=self._service.time_order // MICROSECOND,
                tables={d.topic.name for d in self._service.reads if isinstance(d, Table)},
                drained=self._drained,
            )
        self.reading.settle(self.positions, lambda: None)

    def handle(
        self, partition: Partition, records: Sequence[RawRecord], *, deadline: float = inf
    ) -> int:
        """Handle records of one partition; those before its position were handled already.

        None is handled while the partition is in :attr:`holds`; afterwards they must come again.
        So must those that were left when the deadline came, by the monotonic clock.
        Return how many were handled: one that is to be tried again was not.
        """
        if partition in self.holds:
            return 0
        if self._order is not None:
            self._unordered = True
            taken = self._order.put(partition, records)
            if taken < len(records):
                self.holds[partition] = self._clock() + _FULL  # read on when some are handled
            return taken
        return self._run(partition, records, deadline)

    def next_offset(self, partition: Partition) -> int:
        """Return the offset of the next record of a partition that is to come."""
        order = self._order
        return self.positions[partition] if order is None else order.next_offset(partition)

    def _run(self, partition: Partition, records: Sequence[RawRecord], deadline: float) -> int:
        position = self.positions[partition]
        if (records[0].offset() or 0) < position:
            records = [record for record in records if (record.offset() or 0) >= position]
            if not records:
                return 0
        if self._unsaid:
            self._ticked = True
            self.commit()
        self._begin()
        end = (records[-1].offset() or 0) + 1
        if taken := self._delivery.take({partition: end}):
            self.committed[partition] = end
        sent = self.uncommitted
        self.step.deadline = deadline
        moving = iter(records)
        self._in_hand = records, moving
        with self._breaking():
            hold = self.step.run(partition[0], moving, self._delivery.send)
        self._in_hand = None
        if hold is None:
            self._move(partition, end)
            return len(records)
        self.holds[partition] = hold.until
        if hold.offset > position or taken:
            self._move(partition, hold.offset)  # the group goes back, where it was moved before
        elif self.uncommitted > sent or hold.unfinished:
            self._ticked = True  # a timer went off: what it gave must not wait for the record
        return sum((record.offset() or 0) < hold.offset for record in records)

    def in_hand(self) -> Sequence[RawRecord]:
        """Return the records that are being handled now; any thread may ask."""
        if (in_hand := self._in_hand) is None:
            return ()
        records, moving = in_hand
        if not self._one_by_one:
            return records
        at = max(0, len(records) - length_hint(moving) - 1)
        return records[at : at + 1]

    def postpone(self, partition: Partition) -> None:
        """Leave a partition's records for later, where there is no time for any of them now."""
        self.holds.setdefault(partition, self._clock())

    def wakes_at(self) -> datetime | None:
        """Return when the clock makes something due: a tick, or the end of a hold."""
        waits = [*self.holds.values(), *([at] if (at := self.step.wakes_at()) else [])]
        if (order_at := self.turn_at()) is not None:
            waits.append(order_at)
        return min(waits, default=None)

    def turn_at(self) -> datetime | None:
        """Return when records that wait for their turn may be handled; None: nothing waits."""
        if self._order is None:
            return None
        if self._unordered:
            return EPOCH
        return None if (until := self._order.wakes()) is None else instant(until)

    def release(self) -> list[Partition]:
        """End the holds that are over; return the partitions, to be read from their positions."""
        if not self.holds:
            return []
        now_at = self._clock()
        over = [partition for partition, until in self.holds.items() if until <= now_at]
        for partition in over:
            if self._order is not None and self._order.full(partition):
                self.holds[partition] = now_at + _FULL
            else:
                del self.holds[partition]
        return [partition for partition in over if partition not in self.holds]

    def tick(self, *, deadline: float = inf) -> bool:
        """Do what the clock has made due; return whether there is something new to commit.

        What is left when the deadline comes is still due.
        """
        handled = self._handle_in_order(deadline)
        wakes_at = self.step.wakes_at()
        if wakes_at is None or wakes_at > self._clock():
            return handled
        self._begin()
        self.step.deadline = deadline
        with self._breaking():
            ticked = self.step.tick(self._delivery.send)
        self._ticked |= ticked
        return ticked or handled

    def advance(self, event_time_at: datetime) -> None:
        """Take note of an event time, as if a record of each stream had come with it."""
        self.step.advance(event_time_at)
        self._ticked = True

    def skip_to(self, partition: Partition, offset: int) -> None:
        """Move past offsets that hold no records: the marks that transactions leave behind."""
        if offset > self.positions[partition] and partition not in self.holds:
            if self._order is not None:
                if self._order.holds(partition):
                    return
                self._order.skip_to(partition, offset)
            self._move(partition, offset)

    def begin_at(self, inputs: Mapping[str, Input], *, unread: Collection[Partition]) -> None:
        """Hear, with the state restored, how the inputs are: it goes on where its state stands.

        ``unread`` are the partitions that the group has no offset for; where they are begun is part
        of the first commit. ConfigurationError: state and offsets are not of one commit.
        """
        self._inputs = inputs
        self.step.states.begin()
        kept = self.step.states.notes.get(POSITIONS_KEY)
        found = find_positions(
            self.positions,
            kept,
            inputs=inputs,
            unread=unread,
            group=self._group,
            owner=self._owner,
        )
        topics = {topic for topic, _ in self.positions}
        self._unsaid = self._promise == "at_most_once" and not says_offsets_first(kept, topics)
        self.resumed = {at: found[at] for at in found if found[at] != self.positions[at]}
        self.positions, self.committed = dict(found), dict(found)
        self._moved = {partition: found[partition] for partition in unread}

    def begin_commit(self) -> None:
        """Begin to make what was handled durable, all of it or nothing.

        Nothing may be handled before :meth:`end_commit`.
        """
        if not self.dirty:
            return
        if self._broken:
            raise TransientError(
                "a task that failed half-way cannot be committed any more",
                code="task.broken",
            )
        with self._breaking():
            self._begin()
            keep = self._delivery.keep
            if self._inputs:
                notes = self.step.states.notes
                note = dump_positions(
                    self.positions,
                    self._inputs,
                    owner=self._owner,
                    delivery=self._promise,
                    former=notes.get(POSITIONS_KEY),
                )
                notes.state(POSITIONS_KEY, note)
            for key, value in self.step.states.changes():
                keep(self._changelog, key=key, value=value, partition=self.number)
            self._end = self._delivery.commit(self._moved or self.positions)

    def end_commit(self) -> None:
        """Wait until it is durable; nothing happens where nothing was begun."""
        if self._end is None:
            return
        end, self._end = self._end, None
        with self._breaking():
            end()
            self.step.tally.commit()
            self.committed |= self._moved
            if self._tables:
                self._reach(self._tables)
            self.reading.settle(self.positions, self.step.states.settle)
        self._begun = self._ticked = self._unsaid = False
        self._moved = {}

    def resume(self, ends: Mapping[str, tuple[int, int]]) -> Mapping[str, int]:
        """Take what the shelf has; return where each log is to be read on, by topic.

        ``ends`` says from where to where each log reaches. A shelf that stands outside of any of
        them is not of these logs, and is cleared. What is not returned is read from the start.
        """
        if self.shelf is None:
            return {}
        found = self.shelf.positions
        if any(not low <= found.get(topic, low) <= high for topic, (low, high) in ends.items()):
            self.shelf.clear()
        return self.step.states.resume()

    def taking(self, topic: str) -> Callable[[bytes, bytes | None], None]:
        """Return what takes in the records of one of its logs."""
        states = self.step.states
        return states.apply if topic == self._changelog else states.taking(topic)

    def restored(self, topic: str, position: int, *, complete: bool = False) -> None:
        """Hear that a log was taken in up to an offset; ``complete``: that is its end."""
        if complete and self.shelf is not None:
            self.shelf.confirm()
        self.step.states.restored({topic: position})

    def snapshot(self, position: int) -> None:
        """Hear where the changelog ends before the next commit."""
        if self.shelf is not None:
            self.shelf.confirm()
        self.step.states.snapshot({self._changelog: position})

    def commit(self) -> None:
        """Make what was handled durable, and wait for it."""
        self.begin_commit()
        self.end_commit()

    def close(self) -> None:
        """Give up what is not committed."""
        self.reading.close()
        self.step.tally.discard()
        self._delivery.close()
        if self.shelf is not None:
            self.shelf.close()

    def _handle_in_order(self, deadline: float) -> bool:
        """Handle the records whose turn it is; return whether there were any."""
        order, wakes_at = self._order, self.turn_at()
        if order is None or wakes_at is None or wakes_at > self._clock():
            return False
        handled = False
        merges = self._merging is not None and monotonic() < deadline
        most = MOST_MERGED if merges else 1
        while runs := order.take_runs(micros(self._clock()), most=most):
            # What is there can be handled while reading on has to wait.
            unread = {at: self.holds.pop(at) for at, _ in runs if at in self.holds}
            if self._merging is None or len(runs) == 1:
                self._run(*runs[0], deadline)
            else:
                self._run_merged(self._merging, runs, deadline)
            handled = True
            for partition in {at for at, _ in runs} & self.holds.keys():
                order.go_back(partition, self.positions[partition])
            self.holds = {**unread, **self.holds}
            if monotonic() >= deadline:
                return True
        self._unordered = False
        return handled

    def _run_merged(
        self,
        step: OperatorStep,
        runs: Sequence[tuple[Partition, Sequence[RawRecord]]],
        deadline: float,
    ) -> None:
        """Handle runs of several partitions, in their order, as one moment: all or none of it."""
        ends = {partition: (records[-1].offset() or 0) + 1 for partition, records in runs}
        merged = [raw for _, records in runs for raw in records]
        self._begin()
        self._delivery.take(ends)
        step.deadline = deadline
        self._in_hand = merged, iter(merged)
        with self._breaking():
            hold = step.run_merged(merged, self._delivery.send)
        self._in_hand = None
        for partition, end in ends.items():
            if hold is None:
                self._move(partition, end)
            else:
                self.holds[partition] = hold.until
        self._ticked |= hold is not None  # what was due has been given, in part

    def _waits(self, topic: str) -> bool:
        """Return whether records of a topic wait to be handled."""
        partition = (topic, self.number)
        return partition in self.holds or not self._at_end(partition, self.positions[partition])

    def _reach(self, tables: Sequence[Partition]) -> None:
        """Let the shelf know how far it has tables that the task reads as inputs."""
        committed = self.committed
        self.step.states.snapshot({at[0]: committed[at] for at in tables if at in committed})

    def _begin(self) -> None:
        if not self._begun:
            self._delivery.begin()
            self._begun = True

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Never commit after something failed half-way: some of it is in, some is not."""
        try:
            yield
        except BaseException:
            self._broken = self._ticked = True
            raise

    def _move(self, partition: Partition, offset: int) -> None:
        self.positions[partition] = self._moved[partition] = offset
        if self.step.retries:
            self.step.retries.pass_by(partition, offset)
