"""Lets each record through once: the machine behind ``deduplicate``.

It keeps the event times of the records that it has let through, by their keys and values. One that
comes within the span of such a time is left out. Behind the watermark by more than the span, nobody
can tell any more whether it came before: such a record is late. So what was let through is
forgotten when the watermark is two spans past it.

In the store are ``h``, the head: event time, and who waits; ``k<identity>``: times; and the chunks
of those that wait to be forgotten (:mod:`penstock.core.panes.waiting`).
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from penstock.core.derived.compiled import compile_steps
from penstock.core.derived.selected import ReadSelection
from penstock.core.expression import Expression, compile_row
from penstock.core.expression.values.plainvalues import to_plain
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
from penstock.core.panes.times import END, plus
from penstock.core.panes.waiting import Waiting
from penstock.core.records.schema import FieldType, ListOf, MapOf, Nested, Scalar
from penstock.errors import DataError

__all__ = ["FORGOTTEN_AT_ONCE", "OnceMachine"]

FORGOTTEN_AT_ONCE = 4_000
"""About so many identities are forgotten in one moment, and as many as records came; the others in
the next."""
_HEAD, _PREFIX = b"h", b"k"
_VERSION = 1
_NONE: tuple[int, ...] = ()


class OnceMachine:
    """Passes on what has not come before."""

    pending = False

    def __init__(
        self,
        selection: ReadSelection,
        by: Sequence[Expression],
        within: int,
        *,
        inputs: Sequence[Input],
        store: Store,
        made: type[Any],
    ) -> None:
        self._rows_of = compile_steps(selection.steps, made)
        kinds = [(each, each.field_type) for each in by]
        self._by = [(compile_row(each), _alike(kind)) for each, kind in kinds if kind]
        self._within = within
        self._kept_for = END if within >= END // 2 else 2 * within
        self._store = store
        self._known: dict[bytes, tuple[int, ...]] = {}
        self._dirty: set[bytes] = set()
        self._waiting = Waiting("w", store)
        packed = None
        if (head := store.get(_HEAD)) is not None:
            _, packed, slots = decode(head)
            self._waiting.load(slots)
        self._time = OperatorTime(inputs, packed)
        self._moved = False

    @property
    def watermark(self) -> int:
        """How far event time has come."""
        return self._time.value

    @property
    def newest(self) -> int | None:
        """The newest event time that was ever seen."""
        return self._time.newest

    def take(
        self, arrivals: Sequence[Arrival], *, clock: int, limit: int | None = None
    ) -> MachineOutput:
        """Let through what has not come before."""
        given, time = MachineOutput(), self._time
        self._moved = self._moved or bool(arrivals)
        for arrival in arrivals:
            if not time.believes(arrival, clock):
                if arrival.record is not None:
                    given.late.append(LateArrival(arrival, "ahead", clock - arrival.time))
                continue
            watermark = time.see(arrival, clock)
            if arrival.record is None:
                continue
            try:
                found = [
                    (row, self._identity(arrival, row)) for row in self._rows_of(arrival.record)
                ]
            except DataError as error:
                given.refused.append(Refused(arrival, error))
                continue
            if found and plus(arrival.time, self._within) < watermark:
                given.late.append(LateArrival(arrival, "expired", watermark - arrival.time))
                continue
            passed = [row for row, identity in found if self._is_new(identity, arrival.time)]
            given.results += [Result("add", row, arrival.time) for row in passed]
            given.dropped += not passed
        self._forget(max(limit or 0, FORGOTTEN_AT_ONCE, len(arrivals)))
        return self._with_time(given)

    def more(self, limit: int | None = None) -> MachineOutput:  # noqa: ARG002 - nothing is due later
        """Return nothing."""
        return self._with_time(MachineOutput())

    def advance(
        self, *, clock: int, event_time: int | None = None, limit: int | None = None
    ) -> MachineOutput:
        """Let event time move, and forget."""
        before = self._time.value
        if event_time is None:
            self._time.look(clock)
        else:
            self._time.tell(event_time, clock)
            self._moved = True
        self._moved = self._moved or self._time.value != before
        self._forget(limit or FORGOTTEN_AT_ONCE)
        return self._with_time(MachineOutput())

    def finish(self) -> MachineOutput:
        """Return nothing: nothing waits for event time."""
        return self._with_time(MachineOutput())

    def wakes(self) -> int | None:
        """Return None: what is forgotten later does no harm."""
        return None

    def flush(self) -> None:
        """Write what changed to the store."""
        if not self._moved and not self._dirty:
            return
        for identity in self._dirty:
            if times := self._known[identity]:
                self._store.put(_PREFIX + identity, encode(times))
            else:
                self._store.delete(_PREFIX + identity)
                del self._known[identity]
        self._dirty.clear()
        self._waiting.flush()
        head = [_VERSION, self._time.pack(), self._waiting.slots()]
        self._store.put(_HEAD, encode(head))
        self._moved = False

    def trim(self, most: int) -> None:
        """Forget what is in the store already, where more than so many are in memory."""
        if len(self._known) > most:
            self._known = {identity: self._known[identity] for identity in self._dirty}

    def _identity(self, arrival: Arrival, row: Any) -> bytes:
        return encode([arrival.key, *[plain(value(row)) for value, plain in self._by]])

    def _is_new(self, identity: bytes, time: int) -> bool:
        """Return whether none within the span has come before; from now on one has."""
        times, within = self._times(identity), self._within
        if any(abs(time - each) <= within for each in times):
            return False
        self._known[identity] = (*times, time)
        self._dirty.add(identity)
        self._wait(identity, time)
        return True

    def _times(self, identity: bytes) -> tuple[int, ...]:
        found = self._known.get(identity)
        if found is None:
            packed = self._store.get(_PREFIX + identity)
            found = _NONE if packed is None else tuple(decode(packed))
            if found:
                self._known[identity] = found
        return found

    def _wait(self, identity: bytes, time: int) -> None:
        self._waiting.now = max(self._waiting.now, self._time.value)
        self._waiting.add(plus(time, self._kept_for) + 1, identity)

    def _forget(self, most: int) -> None:
        """Forget about so many of those that can matter no more."""
        watermark = self._time.value
        while most > 0 and (identities := self._waiting.due(watermark)):
            for identity in identities:
                times = self._times(identity)
                kept = tuple(each for each in times if plus(each, self._kept_for) >= watermark)
                if kept != times:
                    self._known[identity] = kept
                    self._dirty.add(identity)
            most -= len(identities)

    def _with_time(self, given: MachineOutput) -> MachineOutput:
        given.watermark, given.newest = self._time.value, self._time.newest
        return given


def _alike(kind: FieldType) -> Callable[[Any], Any]:
    """Return what makes values of a type plain, so that equal ones have the same bytes."""
    if isinstance(kind, ListOf):
        item = _alike(kind.item)
        return lambda values: None if values is None else [item(each) for each in values]
    if isinstance(kind, MapOf):
        inner = _alike(kind.value)
        return lambda found: (
            None if found is None else {name: inner(found[name]) for name in sorted(found)}
        )
    if isinstance(kind, Nested):
        reads = [(attrgetter(each.name), _alike(each.type)) for each in kind.schema.fields]
        return lambda row: None if row is None else [plain(read(row)) for read, plain in reads]
    plain = to_plain(kind)
    if kind != Scalar("float"):
        return plain
    return lambda value: None if value is None else plain(value + 0.0)  # -0.0 is 0.0
