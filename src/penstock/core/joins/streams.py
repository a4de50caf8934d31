"""The machine of stream-stream joins: rows of both sides wait for partners, by key and time.

A left row and a right row are partners if ``left.time - before <= right.time <= left.time +
after``. A row is **late** when event time is past the end of its window by more than the lateness:
it goes to the late ledger. Rows are kept until no row that is not late can be their partner. So
every row meets all its partners, or is in the ledger.

A left row that met no partner gives its result without one when its window has closed. A row that
comes out of order after that, and is not late itself, may still be its partner; then the result
without a partner is withdrawn.

Long because what becomes of a row is decided in one place.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, TypeAlias

import msgspec

from penstock.core.joins.output import Output
from penstock.core.keyed.rows import ALONE, ANSWERED, MATCHED, Row, RowCodec, SideRows
from penstock.core.keyed.wakes import Wakes
from penstock.core.operators.eventtime import OperatorTime
from penstock.core.operators.operator import (
    Arrival,
    Input,
    LateArrival,
    MachineOutput,
    Refused,
    Result,
)
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING, END, NEVER
from penstock.errors import DataError

__all__ = ["SideRule", "StreamsMachine"]

_HEAD = b"h"
_KEY = b"k"
_SWEEPS = 4
"""Rows of no use are forgotten after at most a fourth of the time that they were kept for."""
_HEAD_BYTES = 256 << 10
"""Where the record of a key is larger, no rows are in it."""


class SideRule(NamedTuple):
    """What the machine needs to know of one side."""

    input: int
    read: Callable[[Any], Sequence[Any]] | None
    """From a record of the input to the rows of this side; None: it is one."""
    record: type[Any]
    """What the rows are."""
    keyless: Callable[[Any], bool] | None
    """Whether a row has no key; None: each has one."""
    back: int
    """Partners are at most so much earlier."""
    ahead: int
    """Partners are at most so much later."""
    closes: int
    """After its time, when a row without a partner is answered."""
    late: int
    """After its time, when a row is late."""
    kept: int
    """After its time, until when a row may still find a partner."""
    alone: bool
    """Whether a row without a partner gives a result."""


_Alone: TypeAlias = tuple[int, int, int, Row]
"""When the window of a row without a partner closes, a number, its side, the row."""


class _Key:
    """Both sides of one key, and those that wait to be answered."""

    __slots__ = ("alone", "listed", "number", "sides")

    def __init__(self) -> None:
        self.sides = (SideRows(), SideRows())
        self.listed = NEVER
        """The moment under which it waits."""
        self.alone: list[_Alone] = []
        """Rows without a partner, as a heap."""
        self.number = 0

    def expect(self, closes_at: int, side: int, row: Row) -> None:
        """Let a row wait for its window to close."""
        self.number += 1
        heappush(self.alone, (closes_at, self.number, side, row))


class StreamsMachine:
    """Joins two streams; ``finished``: nothing is late, and all is kept to the end."""

    def __init__(
        self,
        inputs: Sequence[Input],
        sides: tuple[SideRule, SideRule],
        output: Output,
        store: Store,
        *,
        early: bool = False,
        finished: bool = False,
    ) -> None:
        self._sides = sides
        self._feeds = [
            tuple(number for number, side in enumerate(sides) if side.input == each)
            for each in range(len(inputs))
        ]
        self._output = output
        self._store = store
        self._early = early
        self._finished = finished
        self._wakes = Wakes(store, tag=b"w")
        self._keys: dict[bytes, _Key] = {}
        self._dirty: set[bytes] = set()
        self._grain = max(1, *(side.kept // _SWEEPS for side in sides))
        self._codecs = [
            RowCodec(side.record, tag=tag) for side, tag in zip(sides, (b"l", b"r"), strict=True)
        ]
        rows = [codec.rows for codec in self._codecs]
        kept: Any = tuple[int, tuple[int, int, rows[0]], tuple[int, int, rows[1]]]  # type: ignore[valid-type]
        self._read_head = msgspec.msgpack.Decoder(kept).decode
        self._write_head = msgspec.msgpack.Encoder().encode
        packed = None
        if (head := store.get(_HEAD)) is not None:
            packed, wakes = decode(head)
            self._wakes.begin(wakes)
        self._time = OperatorTime(inputs, packed)
        self._bounded = any(
            each.rule is not None and each.rule.ahead is not None for each in inputs
        )
        """Whether a time may be too far ahead of the clock."""
        self._clock = 0

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
        """Whether rows are due that ``more`` has not given yet."""
        return self._wakes.first <= self._mark

    @property
    def _mark(self) -> int:
        """Event time, as far as anything follows from it."""
        if self._finished and self._time.value < END:
            return BEGINNING
        return self._time.value

    def take(
        self, arrivals: Sequence[Arrival], *, clock: int, limit: int | None = None
    ) -> MachineOutput:
        """Take what came in one moment, then give what is due."""
        given = MachineOutput()
        self._clock = clock
        feeds, see, time = self._feeds, self._time.see, self._time
        # Not by the clock yet: what came may show that no stream was silent, only unread.
        before = BEGINNING if self._finished else time.value
        left = self._give_due(given, limit) if self._wakes.first <= before else limit
        for arrival in arrivals:
            watermark = see(arrival, clock)
            if watermark != before and not self._finished:
                before = watermark
                if self._wakes.first <= watermark:
                    left = self._give_due(given, left)
            if arrival.record is None:
                continue
            if self._bounded and not time.believes(arrival, clock):
                given.late.append(LateArrival(arrival, "ahead", clock - arrival.time))
                continue
            taken = False
            for side in feeds[arrival.input]:
                taken |= self._take(arrival, side, before, given)
            if not taken:
                given.dropped += 1
        given.watermark, given.newest = time.value, time.newest
        return given

    def more(self, limit: int | None = None) -> MachineOutput:
        """Go on with what is due, about so many keys."""
        given = MachineOutput(self._time.value, self._time.newest)
        self._give_due(given, limit)
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
        return self.more(limit)

    def finish(self) -> MachineOutput:
        """Give everything that waits: the input is at its end."""
        self._time.finish()
        return self.more()

    def wakes(self) -> int | None:
        """Return the clock from which on there is work without arrivals; None: never."""
        if self._wakes.first == NEVER or self._finished:
            return None
        return self._time.wakes(self._wakes.first, self._clock)

    def flush(self) -> None:
        """Write what changed to the store."""
        write, keys = self._write, self._keys
        for key in self._dirty:
            write(key, keys[key])
        self._dirty.clear()
        self._wakes.flush()
        self._store.put(_HEAD, encode((self._time.pack(), self._wakes.kept())))

    def trim(self, most: int) -> None:
        """Forget keys that are in the store, where more than so many are in memory."""
        if len(self._keys) > most:
            self._keys = {key: self._keys[key] for key in self._dirty}

    def _take(self, arrival: Arrival, number: int, mark: int, given: MachineOutput) -> bool:
        """Take a record of one side; return False where it was dropped."""
        side = self._sides[number]
        time, taken = arrival.time, False
        try:
            rows = (arrival.record,) if side.read is None else side.read(arrival.record)
            if rows and mark > time + side.late:
                if not given.late or given.late[-1].arrival is not arrival:
                    given.late.append(LateArrival(arrival, "expired", mark - time))
                return True
            for row in rows:
                if side.keyless is None or not side.keyless(row):
                    self._join(arrival, number, row, mark, given)
                elif side.alone:
                    self._answer(number, row, time, given)
                else:
                    continue
                taken = True
        except DataError as error:
            given.refused.append(Refused(arrival, error))
            return True
        return taken

    def _join(
        self, arrival: Arrival, number: int, record: Any, mark: int, given: MachineOutput
    ) -> None:
        key, time = arrival.key, arrival.time
        side, other = self._sides[number], self._sides[1 - number]
        held = self._keys.get(key) or self._load(key)
        if held.listed <= mark:
            self._catch_up(key, held, mark, given)
        partners = held.sides[1 - number].between(time - side.back, time + side.ahead)
        state = ALONE
        if partners:
            state, begun = MATCHED, len(given.results)
            if other.alone:
                self._dirty.add(key)
                self._match(held.sides[1 - number], 1 - number, partners, given)
            self._pairs(number, record, time, partners, given)
            if other.alone and not self._output.withdraws:
                _replace(given.results, begun)
        elif side.alone and (self._early or time + side.closes < mark):
            state = ANSWERED
            self._answer(number, record, time, given)
        if side.kept < 0 and (state != ALONE or not side.alone):
            return
        row = self._codecs[number].row(time, state, record, -1)
        held.sides[number].add(row)
        self._dirty.add(key)
        if state == ALONE and side.alone:
            wakes = time + side.closes + 1
            held.expect(wakes, number, row)
        elif held.listed == NEVER:
            wakes = self._sweeps(time + side.kept)
        else:
            return
        if wakes < held.listed:
            held.listed = wakes
            self._wakes.add(wakes, key)

    def _match(
        self, held: SideRows, number: int, partners: Sequence[Row], given: MachineOutput
    ) -> None:
        """Note that rows have met a partner; what was given for them without one is withdrawn."""
        for row in partners:
            if row.state == ANSWERED:
                self._withdraw(number, row.record, row.time, given)
            if row.state != MATCHED:
                held.mark(row, MATCHED)

    def _pairs(
        self, number: int, record: Any, time: int, partners: Sequence[Row], given: MachineOutput
    ) -> None:
        make, results = self._output.make, given.results
        for row in partners:
            met, at = row.record, max(time, row.time)
            made = make(record, met, at) if number == 0 else make(met, record, at)
            if made is not None:
                results.append(Result("add", made, at))

    def _answer(self, number: int, record: Any, time: int, given: MachineOutput) -> None:
        left, right = (record, None) if number == 0 else (None, record)
        made = self._output.make(left, right, time)
        if made is not None:
            given.results.append(Result("add", made, time))

    def _withdraw(self, number: int, record: Any, time: int, given: MachineOutput) -> None:
        left, right = (record, None) if number == 0 else (None, record)
        taken_back = self._output.withdrawal(left, right, time)
        if taken_back is not None:
            given.results.append(taken_back)

    def _give_due(self, given: MachineOutput, limit: int | None) -> int | None:
        """Answer rows whose windows have closed; return how many keys may still be looked at."""
        mark = self._mark
        if limit is not None and limit <= 0:
            return limit
        due: list[_Alone] = []
        keys = self._wakes.due(mark, limit)
        for _, key in keys:
            held = self._keys.get(key) or self._load(key)
            if held.listed <= mark:
                self._close(key, held, mark, due)
        self._answer_all(due, given)
        return None if limit is None else limit - len(keys)

    def _catch_up(self, key: bytes, held: _Key, mark: int, given: MachineOutput) -> None:
        """Do first what was due for a key before the row that came."""
        due: list[_Alone] = []
        self._close(key, held, mark, due)
        self._answer_all(due, given)

    def _answer_all(self, due: list[_Alone], given: MachineOutput) -> None:
        due.sort(key=_in_order)
        for _, _, number, row in due:
            self._answer(number, row.record, row.time, given)

    def _close(self, key: bytes, held: _Key, mark: int, due: list[_Alone]) -> None:
        """Collect the rows of a key whose windows have closed, and forget those of no use."""
        self._dirty.add(key)
        alone = held.alone
        while alone and (alone[0][0] <= mark or alone[0][3].state != ALONE):
            each = heappop(alone)
            if each[3].state == ALONE:
                held.sides[each[2]].mark(each[3], ANSWERED)
                due.append(each)
        wakes = BEGINNING
        for rows, side in zip(held.sides, self._sides, strict=True):
            kept = max(side.kept, side.closes) if side.alone else side.kept
            rows.drop_before(mark - kept)
            if rows.times:
                wakes = max(wakes, self._sweeps(rows.times[-1] + kept))
        wakes = alone[0][0] if alone else wakes
        if wakes > BEGINNING:
            held.listed = wakes
            self._wakes.add(wakes, key)
        else:
            held.listed = NEVER

    def _sweeps(self, time: int) -> int:
        """Return when rows of no use are forgotten: some time after, those of many keys at once."""
        return (time // self._grain + 1) * self._grain

    def _load(self, key: bytes) -> _Key:
        held = self._keys[key] = _Key()
        found = self._store.get(_KEY + key)
        if found is None:
            self._dirty.add(key)  # if nothing is kept of it, it is forgotten then
            return held
        listed, *packed = self._read_head(found)
        held.listed = listed
        for number, (side, codec, part) in enumerate(
            zip(self._sides, self._codecs, packed, strict=True)
        ):
            first, past, _ = part
            names = ((each, codec.name(key, each)) for each in range(first, past))
            kept = ((each, self._store.get(name)) for each, name in names)
            chunks = [(each, codec.decode(chunk)) for each, chunk in kept if chunk is not None]
            rows = held.sides[number]
            rows.load(part, chunks)
            if side.alone:
                for row in rows.rows:
                    if row.state == ALONE:
                        held.number += 1
                        held.alone.append((row.time + side.closes + 1, held.number, number, row))
        heapify(held.alone)
        return held

    def _write(self, key: bytes, held: _Key) -> None:
        left, right = held.sides
        first, second = self._codecs
        left.flush(self._store, first, key)
        right.flush(self._store, second, key)
        if not left.rows and not right.rows:
            self._store.delete(_KEY + key)
            del self._keys[key]
            return
        packed = self._write_head((held.listed, left.packed(), right.packed()))
        if len(packed) > _HEAD_BYTES:
            left.flush(self._store, first, key, whole=True)
            right.flush(self._store, second, key, whole=True)
            packed = self._write_head((held.listed, left.packed(), right.packed()))
        self._store.put(_KEY + key, packed)


def _replace(results: list[Result], begun: int) -> None:
    """Leave out what is withdrawn since then, where a new result takes its row in a table."""
    added = [each for each in results[begun:] if each.change == "add"]
    if added:
        results[begun:] = added


def _in_order(each: _Alone) -> tuple[int, int, int]:
    closes_at, _, number, row = each
    return closes_at, row.time, number
