"""The state of each key: records and time in, changes out.

Records of one key are handled in the order in which they come. A time-out comes before every record
of its key whose event time is past it, and when the watermark is: its change has the moment of the
time-out, whenever it was noticed. So what a key goes through does not depend on how records are cut
into moments, nor on the records of other keys.

In the store are ``h``, the head: event time, and who waits; ``k<key>``: where a key is; and the
chunks of those that wait for a time-out (:mod:`penstock.core.panes.waiting`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from penstock.core.expression import compile_predicate, compile_row
from penstock.core.expression.values.plainvalues import from_plain, to_plain
from penstock.core.expression.values.times import from_micros
from penstock.core.instants import LAST_MICROS
from penstock.core.lifecycles.planned import PlannedLifeCycle, ReadMove
from penstock.core.operators.eventtime import OperatorTime
from penstock.core.operators.operator import Arrival, LateArrival, MachineOutput, Refused, Result
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.core.panes.waiting import Waiting
from penstock.core.records.record import RecordType
from penstock.errors import DataError

__all__ = ["DUE_AT_ONCE", "TIME_OUT", "LifeMachine"]

DUE_AT_ONCE = 4_000
"""About so many keys whose time is out are looked at in one moment; the others in the next."""
TIME_OUT = "time-out"
"""The cause of a change that no record made."""

_HEAD, _PREFIX = b"h", b"k"
_VERSION = 1
Holds = Callable[[Any], bool]


@dataclass(slots=True)
class _Life:
    """Where a key is."""

    state: str
    since: int
    key: Any
    """The values of its key fields, as plain data."""
    listed: int | None = None
    """The moment under which it waits."""


@dataclass(slots=True)
class _Asked:
    """What a record asks for: a move, or to stay."""

    sources: frozenset[str]
    target: str | None
    holds: Holds | None


class LifeMachine:
    """Does the work of a life cycle for one task."""

    def __init__(self, plan: PlannedLifeCycle, *, store: Store, record: RecordType[Any]) -> None:
        self._first = plan.states[0]
        self._states = frozenset(plan.states)
        self._timeouts = plan.timeouts
        self._names = [each.name for each in plan.inputs]
        self._asked = [[_asked(move) for move in moves] for moves in plan.moves]
        plain = [to_plain(field.type) for field in plan.key]
        self._keys = [_key_reader(each.record.schema.key, plain) for each in plan.inputs]
        self._key_fields = [(field.name, from_plain(field.type)) for field in plan.key]
        self._make = record.cls
        self._of_changes = record.schema.field("legal") is not None
        self._entries = {
            state: [(name, compile_row(expression)) for name, expression in fields]
            for state, fields in plan.entries.items()
        }
        self._store = store
        self._lives: dict[bytes, _Life | None] = {}
        self._dirty: set[bytes] = set()
        self._waiting = Waiting("w", store)
        packed = None
        if (head := store.get(_HEAD)) is not None:
            _, packed, slots = decode(head)
            self._waiting.load(slots)
        self._time = OperatorTime(plan.inputs, packed)
        self._moved = False
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
        """Whether there are keys whose time may be out."""
        return self._waiting.is_due(self._time.value)

    def take(
        self, arrivals: Sequence[Arrival], *, clock: int, limit: int | None = None
    ) -> MachineOutput:
        """Let records move their keys, then those whose time is out."""
        given, self._clock = MachineOutput(), clock
        self._moved = self._moved or bool(arrivals)
        for arrival in arrivals:
            if not self._time.believes(arrival, clock):
                if arrival.record is not None:
                    given.late.append(LateArrival(arrival, "ahead", clock - arrival.time))
                continue
            self._time.see(arrival, clock)
            if arrival.record is None:
                continue
            try:
                self._handle(arrival, given)
            except DataError as error:
                given.refused.append(Refused(arrival, error))
        return self._give_due(given, limit)

    def more(self, limit: int | None = None) -> MachineOutput:
        """Go on with keys whose time is out."""
        return self._give_due(MachineOutput(), limit)

    def advance(
        self, *, clock: int, event_time: int | None = None, limit: int | None = None
    ) -> MachineOutput:
        """Let event time move."""
        before, self._clock = self._time.value, clock
        if event_time is None:
            self._time.look(clock)
        else:
            self._time.tell(event_time, clock)
            self._moved = True
        self._moved = self._moved or self._time.value != before
        return self._give_due(MachineOutput(), limit)

    def finish(self) -> MachineOutput:
        """Give the time-outs up to the newest event time: the input is at its end."""
        given, newest = MachineOutput(), self._time.newest
        if newest is not None:
            while self._give_some(given, newest):
                pass
        return self._with_time(given)

    def wakes(self) -> int | None:
        """Return when event time may reach a time-out without a record."""
        first = self._waiting.first
        return None if first is None else self._time.wakes(first, self._clock)

    def flush(self) -> None:
        """Write what changed to the store."""
        if not self._moved and not self._dirty:
            return
        for key in self._dirty:
            life = self._lives[key]
            if life is None:
                self._store.delete(_PREFIX + key)
                del self._lives[key]
            else:
                row = [life.state, life.since, life.listed, life.key]
                self._store.put(_PREFIX + key, encode(row))
        self._dirty.clear()
        self._waiting.flush()
        self._store.put(_HEAD, encode([_VERSION, self._time.pack(), self._waiting.slots()]))
        self._moved = False

    def trim(self, most: int) -> None:
        """Forget what is in the store already, where more than so many are in memory."""
        if len(self._lives) > most:
            self._lives = {key: self._lives[key] for key in self._dirty}

    def _handle(self, arrival: Arrival, given: MachineOutput) -> None:
        at = from_micros(arrival.time)
        if at is None:
            text = f"its event time {arrival.time} is not in the years 1 to 9999"
            raise DataError(text, code="data.invalid-value")
        life = self._life(arrival.key)
        if life is None:
            key = self._keys[arrival.input](arrival.record)
            life = _Life(self._first, arrival.time, key)
            if self._first in self._timeouts:
                self._enter(arrival.key, life, self._first, arrival.time)
        self._time_out(arrival.key, life, max(arrival.time, self._time.value), given)
        target, wanted = self._way(arrival, life.state)
        cause = self._names[arrival.input]
        if target is not None:
            self._move(arrival.key, life, (target, arrival.time, cause), given)
        elif wanted is None:
            given.dropped += 1
        elif self._of_changes:
            self._give(life, life.state, arrival.time, cause, given, wanted=wanted)

    def _way(self, arrival: Arrival, state: str) -> tuple[str | None, str | None]:
        """Return where a record leads from a state; else where it would lead from another one.

        Both None: it asks for nothing, is expected here, or wants what is so already.
        """
        wanted: str | None = None
        record = arrival.record
        for asked in self._asked[arrival.input]:
            here = state in asked.sources
            if not here and (wanted is not None or asked.target is None):
                continue
            if asked.holds is not None and not asked.holds(record):
                continue
            if here:
                return asked.target, None
            wanted = asked.target
        return None, None if wanted == state else wanted

    def _move(
        self, key: bytes, life: _Life, to: tuple[str, int, str], given: MachineOutput
    ) -> None:
        """Let a key move to a state, at a time, for a cause."""
        before, (target, time, cause) = life.state, to
        self._enter(key, life, target, time)
        self._give(life, before, time, cause, given)

    def _enter(self, key: bytes, life: _Life, state: str, time: int) -> None:
        """Let a state begin, and its time run."""
        life.state, life.since = state, time
        due = self._due(life)
        at_rest = state == self._first and due is None
        self._lives[key] = None if at_rest else life
        self._dirty.add(key)
        if due is not None and (life.listed is None or due < life.listed):
            self._list(key, life, due)

    def _list(self, key: bytes, life: _Life, due: int) -> None:
        self._waiting.now = max(self._waiting.now, self._time.value)
        self._waiting.add(due, key)
        life.listed = due

    def _due(self, life: _Life) -> int | None:
        """Return when the time of a state is out; None: never."""
        timeout = self._timeouts.get(life.state)
        due = None if timeout is None else life.since + timeout[0]
        return None if due is None or due > LAST_MICROS else due

    def _time_out(self, key: bytes, life: _Life, until: int, given: MachineOutput) -> None:
        """Let states end whose time is out by a moment; time alone never goes round."""
        while (due := self._due(life)) is not None and due <= until:
            self._move(key, life, (self._timeouts[life.state][1], due, TIME_OUT), given)

    def _give_due(self, given: MachineOutput, limit: int | None) -> MachineOutput:
        most = max(limit or 0, DUE_AT_ONCE)
        while most > 0 and (count := self._give_some(given, self._time.value)):
            most -= count
        return self._with_time(given)

    def _give_some(self, given: MachineOutput, until: int) -> int:
        """Let some keys move whose time is out by a moment; return how many were looked at."""
        keys = self._waiting.due(until)
        for key in keys:
            life = self._life(key)
            if life is None or life.listed is None or life.listed > until:
                continue  # it has moved since, and waits under another moment, or not at all
            life.listed = None
            self._moved = True
            self._dirty.add(key)
            self._time_out(key, life, until, given)
            self._wait_on(key, life)
        return len(keys)

    def _wait_on(self, key: bytes, life: _Life) -> None:
        """Let a key wait for the time-out of its state, where it does not yet."""
        due = self._due(life)
        if due is not None and life.listed is None:
            self._list(key, life, due)

    def _life(self, key: bytes) -> _Life | None:
        """Return where a key is; None: where it began, and no time runs."""
        if key in self._lives:
            return self._lives[key]
        packed = self._store.get(_PREFIX + key)
        if packed is None:
            return None
        state, since, listed, values = decode(packed)
        if state not in self._states:  # a state that is declared no more
            state = self._first
        life = self._lives[key] = _Life(state, since, values, listed)
        return life

    def _give(
        self,
        life: _Life,
        before: str,
        time: int,
        cause: str,
        given: MachineOutput,
        *,
        wanted: str | None = None,
    ) -> None:
        """Give a change, or with ``wanted`` what was illegal."""
        at = from_micros(time)
        pairs = zip(self._key_fields, life.key, strict=True)
        said: dict[str, Any] = {name: back(value) for (name, back), value in pairs}
        said |= {"state": life.state, "before": before, "cause": cause}
        if not self._of_changes:
            given.results.append(Result("add", self._make(**said, since=at), time))
            return
        said |= {"legal": wanted is None, "wanted": wanted, "at": at}
        if wanted is None and (entries := self._entries.get(life.state)):
            change = self._make(**said)
            said |= {name: value(change) for name, value in entries}
        given.results.append(Result("add", self._make(**said), time))

    def _with_time(self, given: MachineOutput) -> MachineOutput:
        given.watermark, given.newest = self._time.value, self._time.newest
        return given


def _asked(move: ReadMove) -> _Asked:
    holds = None if move.condition is None else compile_predicate(move.condition)
    return _Asked(frozenset(move.sources), move.target, holds)


def _key_reader(
    names: Sequence[str], plain: Sequence[Callable[[Any], Any]]
) -> Callable[[Any], list[Any]]:
    """Return what gives the values of the key fields of a record, as plain data."""
    reads = [(attrgetter(name), make) for name, make in zip(names, plain, strict=True)]
    return lambda record: [make(read(record)) for read, make in reads]
