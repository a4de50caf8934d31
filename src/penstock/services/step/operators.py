"""An operator as a service: its pure machine in the state of a task."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.instants import EPOCH, LAST_MICROS, instant, micros
from penstock.core.operators.marks import deleted_at, read_mark, source_of
from penstock.core.operators.operator import (
    Arrival,
    Input,
    Machine,
    MachineOutput,
    Refused,
    RowLookup,
)
from penstock.core.panes.times import BEGINNING
from penstock.core.records.codec import JsonCodec
from penstock.core.records.eventtime import event_time_of
from penstock.core.rollup.declaration import refuse_changed
from penstock.core.status.eventtimes import EventTimes
from penstock.core.wiring.operators import input_numbers, plan_of, written_by
from penstock.core.wiring.results import Results, result_destination
from penstock.errors import ConfigurationError, DataError
from penstock.services.state.machine import MachineState
from penstock.services.state.wholetables import WholeTables
from penstock.services.step.deadletters import DeadLetters
from penstock.services.step.outputs import Send
from penstock.services.step.reactions import Hold
from penstock.services.step.retries import Retries
from penstock.services.step.rounds import rounds_of
from penstock.services.step.step import Clock
from penstock.services.step.tally import Tally

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["DECLARATION", "DUE_KEYS", "OperatorStep"]

T = TypeVar("T")

DUE_KEYS = 2_000
"""About so many keys that are due are looked at in one go; a commit may come between two."""
_LOOK_AGAIN = timedelta(milliseconds=100)
"""After this it is seen whether the records have come that the clock waits for."""
DECLARATION = b"\x00declaration"
"""Where the store says which declaration it is of; no machine's key begins with a zero byte."""


class _Reading:
    """How the records of one topic become arrivals."""

    def __init__(self, inputs: list[tuple[int, Input]]) -> None:
        self.numbers = tuple(number for number, _ in inputs)
        first = inputs[0][1]
        self.topic = first.topic
        self.accept: Callable[[bytes | None, bytes | None], Any] = JsonCodec(
            first.record, max_bytes=first.max_record_bytes
        ).accept
        self.table = first.kind == "table"
        self.time = event_time_of(first.record.schema)
        self.sourced = bool(first.sources)


class OperatorStep:
    """Handles the records of one task; those that come together are one moment.

    A record that does not decode, or that an expression cannot be computed for, is dead-lettered;
    one that came too late is in the late ledger.
    """

    def __init__(
        self,
        graph: Graph,
        service: Service,
        *,
        clock: Clock,
        shelf: "Shelf | None" = None,
        tables: WholeTables | None = None,
        behind: Callable[[], bool] = lambda: False,
    ) -> None:
        self._plan = plan_of(service)
        self.states = MachineState(shelf)
        self.tally = Tally()
        self.deadline = inf
        """When to leave what is due for later, by the monotonic clock."""
        self.retries = Retries(service.name, clock=clock)  # there is no user's code that could fail
        self._clock = clock
        inputs = self._plan.inputs
        self._readings = {
            topic: _Reading([(number, inputs[number]) for number in numbers])
            for topic, numbers in input_numbers(self._plan).items()
        }
        self._broadcasts: dict[str, RowLookup] = {
            each.name: (tables or {})[each.topic] for each in inputs if each.kind == "broadcast"
        }
        self._record = written_by(service).record
        self._results = Results(result_destination(graph, service))
        self._dead_letters = DeadLetters(graph, service, clock=clock)
        self._part = service.name
        self._behind = behind if self._plan.stateful else lambda: False
        """Whether records wait to be handled."""
        self._kind = service.operator.kind if service.operator is not None else "operator"
        self._topics = [each.topic for each in inputs]
        self._alone = len(self._readings) == 1 or self._plan.stateful
        self._machine: Machine | None = None
        self._rounds = rounds_of(graph, service)
        once = all(len(each.numbers) == 1 for each in self._readings.values())
        self.merges = self._rounds is None and once
        """Whether records of several topics may be one moment (:meth:`run_merged`)."""
        self._number = 0
        self._advanced_to: int | None = None
        self._given: Counter[str] = Counter()
        self._times = EventTimes()

    @property
    def last_dead_letter(self) -> str:
        """Return the last dead letter in words, empty where there was none."""
        return self._results.last_dead_letter or self._dead_letters.last

    def facts(self) -> dict[str, int]:
        """Return how much the machine holds, and what it has given since the task began."""
        held = {"state records": len(self.states)} if self._plan.stateful else {}
        return {**held, **self._given}

    def event_times(self) -> EventTimes:
        """Return the watermark, and the newest event time that was seen."""
        return self._times

    def open(self, number: int) -> None:
        """Begin with the state that was restored; ConfigurationError where another made it."""
        self._number = number
        if self._plan.stateful:
            self._refuse_another()
        self._machine = self._asked(
            self._plan.machine, self.states, self._record, broadcasts=self._broadcasts
        )
        self.states.machine = self._machine
        self._see_times(self._machine)

    def run(self, topic: str, records: Iterable[RawRecord], send: Send) -> Hold | None:
        """Handle records of one topic: those that came together are one moment.

        What a moment before has made due comes first, and the records wait for it. In a cycle each
        record is a moment: what it makes due counts its rounds.
        """
        reading = self._readings[topic]
        times = len(reading.numbers)
        if self._rounds is None:
            return self._moment(((reading, raw) for raw in records), send, times=times)
        kept, send = self._rounds.follow(topic, records, send, self._give_up)
        for raw in kept:
            if (hold := self._moment(((reading, raw),), send, times=times)) is not None:
                return hold
        return None

    def run_merged(self, records: Iterable[RawRecord], send: Send) -> Hold | None:
        """Handle records of several topics as one moment, in the order in which they are given."""
        readings = self._readings
        return self._moment(((readings[raw.topic() or ""], raw) for raw in records), send, times=1)

    def _give_up(self, raw: RawRecord, error: DataError, send: Send) -> None:
        """Bury a record that has gone round too often."""
        self._dead_letters.bury(raw, error, send)
        self.tally.dead_lettered += 1

    def _moment(
        self, records: Iterable[tuple[_Reading, RawRecord]], send: Send, *, times: int
    ) -> Hold | None:
        if not self._give_due(send):
            _, first = next(iter(records))
            return Hold(first.offset() or 0, self._clock(), unfinished=True)
        came: list[Arrival] = []
        raws: list[RawRecord] = []
        marks = 0
        for reading, raw in records:
            try:
                arrival = self._arrival(reading, raw)
            except DataError as error:
                self._dead_letters.bury(raw, error, send)
                self.tally.dead_lettered += 1
                continue
            marks += arrival.record is None and not reading.table
            for number in reading.numbers:
                came.append(arrival if number == arrival.input else arrival._replace(input=number))
                raws.append(raw)
        if came:
            self._take(came, raws, send, times=times, marks=marks)
        return None

    def wakes_at(self) -> datetime | None:
        """Return when :meth:`tick` has something to do; None: nothing waits for the clock."""
        machine = self._running()
        if self._advanced_to is not None or machine.pending:
            return EPOCH
        moment = machine.wakes()
        if moment is None or moment > LAST_MICROS:
            return None
        wakes_at, now_at = instant(max(0, moment)), self._clock()
        return now_at + _LOOK_AGAIN if wakes_at <= now_at and self._behind() else wakes_at

    def tick(self, send: Send) -> bool:
        """Give what is due: by what came before, by the clock, or as was told.

        What is left at the deadline is due again at once. While records wait to be handled the
        clock moves nothing: streams are not silent that nobody has read.
        """
        pending = self._running().pending
        if not self._give_due(send):
            return True
        if self._advanced_to is None and self._behind():
            return pending
        event_time, self._advanced_to = self._advanced_to, None
        clock = micros(self._clock())
        advance = self._running().advance
        given = self._asked(advance, clock=clock, event_time=event_time, limit=DUE_KEYS)
        self._send(given, send)
        self._give_due(send)
        return True

    def advance(self, event_time_at: datetime) -> None:
        """Take note of an event time, as if a record of each stream had come with it."""
        self._advanced_to = micros(event_time_at)

    def close(self) -> None:
        """End; the state is on the changelog."""

    def _arrival(self, reading: _Reading, raw: RawRecord) -> Arrival:
        key, value, partition = raw.key(), raw.value(), raw.partition() or 0
        number, offset, source = reading.numbers[0], raw.offset() or 0, str(partition)
        if value is None and reading.table and key is not None:
            deleted = deleted_at(raw.headers())
            time = log_time(raw) if deleted is None else deleted
            return Arrival(number, key, None, time, source, offset, partition)
        if reading.sourced:
            headers = raw.headers()
            if value is None and (mark := read_mark(headers)):
                return Arrival(number, b"", None, mark[1], mark[0], offset, partition)
            source = source_of(headers, source)
        record = reading.accept(key, value)
        time = log_time(raw) if reading.time is None else reading.time(record)
        return Arrival(number, key or b"", record, time, source, offset, partition)

    def _take(
        self, came: list[Arrival], raws: list[RawRecord], send: Send, *, times: int, marks: int
    ) -> None:
        """Let the machine take a moment, and count what became of its records.

        ``times`` says for how many inputs each of them came.
        """
        clock = micros(self._clock())
        given = self._asked(self._running().take, came, clock=clock, limit=DUE_KEYS)
        source = self._source(came[0])
        self._send(given, send, raws=(came, raws), source=source)
        dead = len({self._place(each.arrival) for each in given.refused})
        filtered = given.dropped // times
        self.tally.filtered += filtered + marks
        self.tally.passed += len(came) // times - marks - filtered - dead
        if self._plan.stateful:  # results may be of any time that its own watermark has not passed
            newest = self._running().watermark
        else:
            newest = max((each.time for each in came if each.record is not None), default=BEGINNING)
        if newest > BEGINNING:
            self._results.mark(source, newest, send)

    def _source(self, arrival: Arrival) -> str:
        """Return whose event time the results carry where they go to other partitions."""
        return str(self._number) if self._alone else arrival.source

    def _give_due(self, send: Send) -> bool:
        """Give what is due, a slice at least; return whether all of it was given in time."""
        machine = self._running()
        while machine.pending:
            self._send(self._asked(machine.more, DUE_KEYS), send)
            if monotonic() >= self.deadline:
                break
        return not machine.pending

    def _send(
        self,
        given: MachineOutput,
        send: Send,
        *,
        raws: tuple[list[Arrival], list[RawRecord]] = ([], []),
        source: str | None = None,
    ) -> None:
        self._given.update(given.counts)
        self._see_times(self._running())
        now_at = self._clock()
        self._results.send(given.results, send, source=source, now_at=now_at)
        self.tally.written += len(given.results)
        for late in given.late:
            self._given["ahead records" if late.reason == "ahead" else "late records"] += 1
            self._results.late(late, send)
            self.tally.written += 1
        if given.refused:
            self._bury(given.refused, raws, send, now_at)

    def _bury(
        self,
        refused: list[Refused],
        raws: tuple[list[Arrival], list[RawRecord]],
        send: Send,
        now_at: datetime,
    ) -> None:
        """Bury what expressions failed on; of this moment each record once, as it came."""
        raw_by_place = {(each.input, each.offset): raw for each, raw in zip(*raws, strict=True)}
        buried: set[tuple[str, int]] = set()
        for arrival, error in refused:
            raw = raw_by_place.get((arrival.input, arrival.offset))
            if raw is None:  # it was counted when it came
                self._results.bury_arrival(arrival, error, send, now_at)
                self.tally.written += 1
            elif (place := self._place(arrival)) not in buried:
                buried.add(place)
                self._dead_letters.bury(raw, error, send)
                self.tally.dead_lettered += 1

    def _place(self, arrival: Arrival) -> tuple[str, int]:
        return self._topics[arrival.input], arrival.offset

    def _see_times(self, machine: Machine) -> None:
        if machine.newest is not None:
            reached = machine.watermark if machine.watermark > BEGINNING else None
            self._times = EventTimes.of_micros(reached, machine.newest)

    def _asked(self, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Call the machine; ConfigurationError where it cannot read what is in its state."""
        try:
            return call(*arguments, **options)
        except msgspec.MsgspecError as error:  # records were decoded before, it is no record's
            raise ConfigurationError(
                f"{self._part}: what the {self._kind} keeps does not fit the types of its inputs, "
                "which have changed",
                code="state.unreadable",
                detail=str(error),
                hint="give the inputs their types back; "
                "or give it a new name: its results are then computed anew from the log",
            ) from error

    def _running(self) -> Machine:
        if self._machine is None:
            raise RuntimeError("a step handles records after it was opened")
        return self._machine

    def _refuse_another(self) -> None:
        now = dict(self._plan.declaration())
        if (kept := self.states.get(DECLARATION)) is None:
            self.states.put(DECLARATION, msgspec.json.encode(now))
        else:
            hint = "give it a new name; its results are then computed anew from the log"
            before = msgspec.json.decode(kept)
            refuse_changed(self._part, before, now, hint=hint, what=self._kind)


def log_time(raw: RawRecord) -> int:
    """Return when a record was written, in microseconds."""
    return max(0, raw.timestamp()[1]) * 1000
