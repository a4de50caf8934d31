"""The machines of joins that look rows up: a stream with a table, or with one that is broadcast.

A table row alone gives no results. A record finds the row that is there when it comes. Where the
table keeps versions, it finds the one that held at its own event time, among those that have come;
with ``wait`` it looks only when event time is so far past its own. Over a finished range, which
comes in the order in which it was written, it does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.core.joins.output import Output
from penstock.core.joins.planned import PlannedJoin
from penstock.core.joins.rekey import key_text, keyless
from penstock.core.keyed.tablerows import TableRows
from penstock.core.keyed.wakes import Wakes
from penstock.core.operators.eventtime import OperatorTime
from penstock.core.operators.operator import Arrival, MachineOutput, Refused, Result, RowLookup
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING, END, NEVER
from penstock.errors import DataError

__all__ = ["LookupMachine", "WholeMachine"]

_HEAD = b"h"
_WAITING = b"q"


class _Waits(NamedTuple):
    """A record that waits to look the table up."""

    key: bytes
    time: int
    record: Any


class LookupMachine:
    """Joins the records of a stream with the rows of a table."""

    def __init__(
        self, plan: PlannedJoin, output: Output, store: Store, *, record: type[Any]
    ) -> None:
        left, right = plan.sides
        self._left, self._table = left.input, right.input
        self._read, self._keeps = left.rows(), right.rows()
        self._keyless = keyless(left.schema, left.on)
        self._outer = plan.how != "inner"
        self._output = output
        self._store = store
        self._versions = right.history is not None
        self._wait = plan.spans.wait
        self._rows = TableRows(
            store, record, tag=b"k", history=right.history, versions=self._versions
        )
        self._due = Wakes(store, tag=b"w")
        self._waits: dict[bytes, _Waits] = {}
        self._fresh: set[bytes] = set()
        self._number = self._clock = 0
        packed = None
        if (head := store.get(_HEAD)) is not None:
            packed, self._number, due, rows = decode(head)
        self._time = OperatorTime(plan.inputs, packed)
        if head is not None:
            self._due.begin(due)
            self._rows.begin(rows, self._since)
        self._encode = msgspec.msgpack.Encoder().encode
        kept: Any = tuple[bytes, int, plan.class_of(0)]  # type: ignore[misc]
        self._decode = msgspec.msgpack.Decoder(kept).decode

    @property
    def watermark(self) -> int:
        """How far event time has come."""
        return self._time.value

    @property
    def newest(self) -> int | None:
        """The newest event time that was ever seen."""
        return self._time.newest

    @property
    def pending(self) -> bool:
        """Whether records are due to look the table up."""
        return self._due.first <= self._mark

    @property
    def _mark(self) -> int:
        return self._time.value

    @property
    def _since(self) -> int:
        """Event time as versions are forgotten by: what a record waits for is not too old.

        The end of the input makes none too old.
        """
        if self._time.value == END:
            return BEGINNING
        return min(self._time.value, self._due.first - (self._wait or 0))

    def take(
        self,
        arrivals: Sequence[Arrival],
        *,
        clock: int,
        limit: int | None = None,  # noqa: ARG002 - what is due looks up what is there at that moment
    ) -> MachineOutput:
        """Take what came in one moment; what is due looks the table up before what comes next."""
        given = MachineOutput()
        self._clock = clock
        if self._versions or self._wait is not None:
            self._take_in_time(arrivals, clock, given)
        else:
            self._take_as_they_come(arrivals, clock, given)
        given.watermark, given.newest = self._time.value, self._time.newest
        return given

    def more(self, limit: int | None = None) -> MachineOutput:  # noqa: ARG002 - all of it
        """Let the records that are due look the table up."""
        given = MachineOutput(self._time.value, self._time.newest)
        self._give_due(given)
        return given

    def advance(
        self, *, clock: int, event_time: int | None = None, limit: int | None = None
    ) -> MachineOutput:
        """Let the clock move; ``event_time`` is an event time, as if each source had shown it."""
        self._clock = clock
        if event_time is None:
            self._time.look(clock)
        else:
            self._time.tell(event_time, clock)
        given = self.more(limit)
        self._rows.sweep(self._since)
        return given

    def finish(self) -> MachineOutput:
        """Let every record look the table up: the input is at its end."""
        self._time.finish()
        return self.more()

    def wakes(self) -> int | None:
        """Return the clock from which on there is work without arrivals; None: never."""
        first = self._due.first
        return None if first == NEVER else self._time.wakes(first, self._clock)

    def flush(self) -> None:
        """Write what changed to the store."""
        self._rows.flush()
        for name in self._fresh:
            self._store.put(_WAITING + name, self._encode(self._waits[name]))
        self._fresh.clear()
        self._due.flush()
        head = (self._time.pack(), self._number, self._due.kept(), self._rows.slots())
        self._store.put(_HEAD, encode(head))

    def trim(self, most: int) -> None:
        """Forget what is in the store, where more than so much is in memory."""
        self._rows.trim(most)
        if len(self._waits) > most:
            self._waits = {name: self._waits[name] for name in self._fresh}

    def _take_as_they_come(
        self, arrivals: Sequence[Arrival], clock: int, given: MachineOutput
    ) -> None:
        table, row_of, newest = self._table, self._rows.row, dict[str, Arrival]()
        read, keys_missing, outer = self._read, self._keyless, self._outer
        make, results = self._output.make, given.results
        for arrival in arrivals:
            record, time = arrival.record, arrival.time
            if arrival.input == table:
                self._put(arrival, given)
                continue
            known = newest.get(arrival.source)
            if known is None or time > known.time:
                newest[arrival.source] = arrival
            if record is None:
                continue
            if read is not None or keys_missing is not None:
                self._look_up_each(arrival, given)
                continue
            row = row_of(arrival.key)
            if row is None and not outer:
                continue
            try:
                made = make(record, row, time)
            except DataError as error:
                given.refused.append(Refused(arrival, error))
                continue
            if made is not None:
                results.append(Result("add", made, time))
        for arrival in newest.values():
            self._time.see(arrival, clock)

    def _take_in_time(self, arrivals: Sequence[Arrival], clock: int, given: MachineOutput) -> None:
        for arrival in arrivals:
            if arrival.input == self._table:
                self._put(arrival, given)
                continue
            self._time.see(arrival, clock)
            mark = self._mark
            if self._due.first <= mark:
                self._give_due(given)
            if arrival.record is not None:
                self._look_up_each(arrival, given)
        self._rows.sweep(self._since)

    def _put(self, arrival: Arrival, given: MachineOutput) -> None:
        row = arrival.record
        try:
            if row is not None and self._keeps is not None and not self._keeps(row):
                row = None
        except DataError as error:
            given.refused.append(Refused(arrival, error))
            return
        self._rows.put(arrival.key, row, arrival.time, self._since)

    def _look_up_each(self, arrival: Arrival, given: MachineOutput) -> None:
        taken = False
        try:
            rows = (arrival.record,) if self._read is None else self._read(arrival.record)
            for record in rows:
                if self._keyless is None or not self._keyless(record):
                    self._look_up(arrival.key, record, arrival.time, given)
                elif self._outer:
                    self._give(record, None, arrival.time, given)
                else:
                    continue
                taken = True
        except DataError as error:
            given.refused.append(Refused(arrival, error))
            return
        if not taken:
            given.dropped += 1

    def _look_up(self, key: bytes, record: Any, time: int, given: MachineOutput) -> None:
        mark = self._mark
        if self._wait is not None and mark < time + self._wait:
            name = self._number.to_bytes(8, "big")
            self._number += 1
            self._waits[name] = _Waits(key, time, record)
            self._fresh.add(name)
            self._due.add(time + self._wait, name)
            return
        if self._versions:
            row = self._rows.as_of(key, time, BEGINNING if mark == END else mark)
        else:
            row = self._rows.row(key)
        self._give(record, row, time, given)

    def _give(self, record: Any, row: Any | None, time: int, given: MachineOutput) -> None:
        if row is None and not self._outer:
            return
        made = self._output.make(record, row, time)
        if made is not None:
            given.results.append(Result("add", made, time))

    def _give_due(self, given: MachineOutput) -> None:
        due: list[tuple[int, bytes, _Waits]] = []
        for _, name in self._due.due(self._mark):
            waits = self._waits.pop(name, None) or self._stored(name)
            if waits is None:
                continue  # it was done before a restart
            due.append((waits.time, name, waits))
            if name in self._fresh:
                self._fresh.remove(name)
            else:
                self._store.delete(_WAITING + name)
        due.sort(key=lambda each: each[:2])
        for time, _, (key, _, record) in due:
            row = self._rows.as_of(key, time, time) if self._versions else self._rows.row(key)
            self._give(record, row, time, given)

    def _stored(self, name: bytes) -> _Waits | None:
        found = self._store.get(_WAITING + name)
        return None if found is None else _Waits(*self._decode(found))


class WholeMachine:
    """Joins the records of a stream with a table that the host keeps whole."""

    pending = False

    def __init__(self, plan: PlannedJoin, rows: RowLookup, output: Output) -> None:
        left, right = plan.sides
        self._time = OperatorTime(plan.inputs)
        self._read, self._keeps = left.rows(), right.rows()
        self._key = key_text(left.schema, left.on)
        self._keyless = keyless(left.schema, left.on)
        self._rows, self._output, self._outer = rows, output, plan.how != "inner"

    @property
    def watermark(self) -> int:
        """How far event time has come, since the machine was made."""
        return self._time.value

    @property
    def newest(self) -> int | None:
        """The newest event time that was seen."""
        return self._time.newest

    def take(
        self,
        arrivals: Sequence[Arrival],
        *,
        clock: int,
        limit: int | None = None,  # noqa: ARG002 - nothing is due later
    ) -> MachineOutput:
        """Give what each record makes with the row that it points at."""
        given = MachineOutput()
        newest: dict[str, Arrival] = {}
        for arrival in arrivals:
            known = newest.get(arrival.source)
            if known is None or arrival.time > known.time:
                newest[arrival.source] = arrival
            if arrival.record is None:
                continue
            try:
                records = (arrival.record,) if self._read is None else self._read(arrival.record)
                taken = [self._join(record, arrival.time, given) for record in records]
            except DataError as error:
                given.refused.append(Refused(arrival, error))
                continue
            if not any(taken):
                given.dropped += 1
        for arrival in newest.values():
            self._time.see(arrival, clock)
        given.watermark, given.newest = self._time.value, self._time.newest
        return given

    def more(self, limit: int | None = None) -> MachineOutput:  # noqa: ARG002 - nothing is due later
        """Return nothing."""
        return MachineOutput(self._time.value, self._time.newest)

    def advance(
        self, *, clock: int, event_time: int | None = None, limit: int | None = None
    ) -> MachineOutput:
        """Take note of a time."""
        if event_time is not None:
            self._time.tell(event_time, clock)
        return self.more(limit)

    def finish(self) -> MachineOutput:
        """Return nothing: nothing waits."""
        self._time.finish()
        return self.more()

    def wakes(self) -> int | None:
        """Return None: nothing waits."""
        return None

    def flush(self) -> None:
        """Do nothing: nothing is kept."""

    def trim(self, most: int) -> None:
        """Do nothing."""

    def _join(self, record: Any, time: int, given: MachineOutput) -> bool:
        """Join one record; return False where it has no key and is dropped."""
        if self._keyless is not None and self._keyless(record):
            row = None
            if not self._outer:
                return False
        else:
            row = self._rows.get(self._key(record))
            if row is not None and self._keeps is not None and not self._keeps(row):
                row = None
        if row is None and not self._outer:
            return True
        made = self._output.make(record, row, time)
        if made is not None:
            given.results.append(Result("add", made, time))
        return True
