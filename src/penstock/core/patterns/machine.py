"""Does the work of one pattern for one task: keys in a store, their matching, event time.

A task is a few records in a store of bytes:

- ``h`` the head: the clock, event time, and how many chunks of waiting keys each slot has;
- ``k<key>`` a key: what was begun for it, and the records that wait for their turn;
- ``w<slot>.<n>`` chunks: keys that wait for the watermark, with the moment each waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from penstock.core.instants import micros
from penstock.core.operators.eventtime import OperatorTime
from penstock.core.operators.operator import Arrival, LateArrival, MachineOutput, Refused
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.core.panes.times import NEVER
from penstock.core.panes.waiting import Waiting
from penstock.core.patterns.matches.keys import Found, Key, Matching
from penstock.core.patterns.planned import PlannedPattern
from penstock.core.patterns.results import ResultMaker
from penstock.core.records.record import RecordType
from penstock.core.records.schema import Scalar
from penstock.errors import DataError

__all__ = ["PatternMachine"]

_HEAD = b"h"
_KEY = b"k"
_VERSION = 1


class PatternMachine:
    """The matches of one task; what it has looked at stays in memory until ``trim``."""

    def __init__(self, plan: PlannedPattern, store: Store, record: RecordType[Any]) -> None:
        self._matching = Matching(plan)
        self._results = ResultMaker(plan, record)
        self._lateness = plan.lateness
        self._wary = any(
            each.rule is not None and each.rule.ahead is not None for each in plan.inputs
        )
        self._key_of = _key_reader(plan)
        self._store = store
        self._keys: dict[bytes, Key] = {}
        self._dirty: set[bytes] = set()
        self._waiting = Waiting("w", store)
        self._clock = 0
        packed = None
        if (head := store.get(_HEAD)) is not None:
            version, self._clock, packed, slots = decode(head)
            if version != _VERSION:
                text = f"pattern state of version {version}, this release reads {_VERSION}"
                raise DataError(text, code="state.version", hint="rebuild it from the log")
            self._waiting.load(slots)
        self._time = OperatorTime(plan.inputs, packed)
        self._waiting.now = self._time.value

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
        """Whether keys are due that ``more`` has not given yet."""
        return self._waiting.is_due(self._time.value)

    def take(
        self, arrivals: Sequence[Arrival], *, clock: int, limit: int | None = None
    ) -> MachineOutput:
        """Take what came in one moment, then give about ``limit`` of what is due."""
        given = MachineOutput()
        clock = self._clock = max(self._clock, clock)
        time, lateness, add = self._time, self._lateness, self._matching.add
        see, key_of = time.see, self._key_of
        touched: dict[bytes, Key] = {}
        for arrival in arrivals:
            at = arrival.time
            if self._wary and not time.believes(arrival, clock):
                given.late.append(LateArrival(arrival, "ahead", clock - at))
                continue
            watermark = see(arrival, clock)
            if arrival.record is None:
                continue
            if at < watermark - lateness:
                given.late.append(LateArrival(arrival, "expired", watermark - at))
                continue
            name = key_of(arrival.record)
            key = touched.get(name)
            if key is None:
                key = touched[name] = self._key(name)
            add(key, arrival)
        self._waiting.now = max(self._waiting.now, time.look(clock))
        found = Found()
        for name, key in touched.items():
            self._go_on(name, key, found)
        return self._give(given, found, limit)

    def more(self, limit: int | None = None) -> MachineOutput:
        """Go on with what is due, about so many keys."""
        return self._give(MachineOutput(), Found(), limit)

    def advance(
        self, *, clock: int, event_time: int | None = None, limit: int | None = None
    ) -> MachineOutput:
        """Let the clock move; ``event_time`` is an event time, as if each source had shown it."""
        clock = self._clock = max(self._clock, clock)
        if event_time is None:
            self._time.look(clock)
        else:
            self._time.tell(event_time, clock)
        return self._give(MachineOutput(), Found(), limit)

    def finish(self) -> MachineOutput:
        """Give everything that waits for event time: the input is at its end."""
        self._time.finish()
        return self._give(MachineOutput(), Found(), None)

    def wakes(self) -> int | None:
        """Return the clock from which on there is work without arrivals; None: never."""
        first = self._waiting.first
        if first is None:
            return None
        return self._clock if self.pending else self._time.wakes(first, self._clock)

    def flush(self) -> None:
        """Write what changed to the store."""
        for name in self._dirty:
            key = self._keys[name]
            if key.empty:
                self._store.delete(_KEY + name)
                del self._keys[name]
            else:
                self._store.put(_KEY + name, encode(self._matching.pack(key)))
        self._dirty.clear()
        self._waiting.flush()
        head = (_VERSION, self._clock, self._time.pack(), self._waiting.slots())
        self._store.put(_HEAD, encode(head))

    def trim(self, most: int) -> None:
        """Forget what is in the store already, where more than so many keys are in memory."""
        if len(self._keys) > most:
            self._keys = {name: self._keys[name] for name in self._dirty}

    def _key(self, name: bytes) -> Key:
        key = self._keys.get(name)
        if key is None:
            found = self._store.get(_KEY + name)
            key = self._matching.new() if found is None else self._matching.unpack(decode(found))
            self._keys[name] = key
        return key

    def _give(self, given: MachineOutput, found: Found, limit: int | None) -> MachineOutput:
        """Go on with keys that are due, and say how far event time is."""
        looked_at = 0
        watermark = self._time.value
        while (limit is None or looked_at < limit) and (due := self._waiting.due(watermark)):
            looked_at += len(due)
            for name in due:
                key = self._key(name)
                # It may have been looked at since it was listed, or be listed twice.
                if key.listed <= watermark:
                    self._go_on(name, key, found)
        for match, change in found.results:
            try:
                given.results.append(self._results.result(match, change))
            except DataError as error:
                given.refused.append(Refused(match.last.event.arrival, error))
        given.refused += (Refused(event.arrival, why) for event, why in found.failed)
        given.watermark, given.newest = watermark, self._time.newest
        return given

    def _go_on(self, name: bytes, key: Key, found: Found) -> None:
        watermark = self._time.value
        due = self._matching.due(key)
        if due > watermark:  # nothing but that records wait
            key.waited = True
            self._dirty.add(name)
        else:
            if self._matching.go_on(key, watermark, found):
                self._dirty.add(name)
            due = self._matching.due(key)
        listed = key.listed
        if listed <= watermark:  # it was taken out of its slot, or will be in vain
            listed = NEVER
        if due < listed:
            listed = max(due, watermark + 1)
            self._waiting.add(listed, name)
            self._dirty.add(name)
        key.listed = listed


def _key_reader(plan: PlannedPattern) -> Callable[[Any], bytes]:
    """Return what gives the key of a record as bytes: equal where its ``by`` fields are."""
    if not plan.by:
        return lambda _record: b""
    if len(plan.by) == 1 and plan.by[0].type == Scalar("text"):
        read = attrgetter(plan.by[0].name)
        return lambda record: read(record).encode()
    names = [field.name for field in plan.by]
    return lambda record: encode([_plain(getattr(record, name)) for name in names])


def _plain(value: Any) -> Any:
    return micros(value) if isinstance(value, datetime) else value
