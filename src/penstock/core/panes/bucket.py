"""A bucket of keys: their windows, their watermark, and which of them wait for what.

Every engine keeps its pane state in buckets: Spark one for each partition of its state store, a
service one for each task, the test driver likewise. A bucket is a few records in a store of bytes:

- ``h`` the head: the clock, the watermark, and how many chunks each slot has;
- ``k<key>`` a key: its windows, and the moments it is already listed under;
- ``w<slot>.<n>`` and ``c<slot>.<n>`` chunks: keys that wait for the watermark or for the clock,
  with the moment each waits for.

A moment's slot is its second. Whoever waits is appended to a chunk once for each moment; when a
slot is due its chunks are read and deleted, so no key is read before it has work to do.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from penstock.core.panes.arrivals import Ahead, Arrivals
from penstock.core.panes.machine import KeyState, Outcome, PaneMachine
from penstock.core.panes.packing import decode, encode, pack, unpack
from penstock.core.panes.pane import LateElement, Pane
from penstock.core.panes.times import END, NEVER, At
from penstock.core.panes.watermark import SourceTime, Watermark, WatermarkRule

__all__ = ["Bucket", "Given", "MemoryStore", "Store"]

T = TypeVar("T")

SLOT = 1_000_000
"""Moments of one slot: a second of microseconds."""

_HEAD = b"h"
_VERSION = 1
_NOWHERE = At(NEVER, NEVER)


class Store(Protocol):
    """Where a bucket's records are: bytes to bytes."""

    def get(self, key: bytes) -> bytes | None:
        """Return a record, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""

    def delete(self, key: bytes) -> None:
        """Delete a record that may be there."""


class MemoryStore(dict[bytes, bytes]):
    """A store that lives as long as its process."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""
        self[key] = value

    def delete(self, key: bytes) -> None:
        """Delete a record that may be there."""
        self.pop(key, None)


@dataclass(slots=True)
class Given:
    """What a bucket gave in one moment, each with its key."""

    watermark: int
    clock: int
    panes: list[tuple[bytes, Pane]] = field(default_factory=list)
    late: list[tuple[bytes, LateElement]] = field(default_factory=list)
    ahead: list[Ahead] = field(default_factory=list)
    newest: int | None = None
    """The newest event time that was ever seen."""

    def take(self, key: bytes, outcome: Outcome) -> None:
        """Keep what the machine gave for a key."""
        self.panes += ((key, pane) for pane in outcome.panes)
        self.late += ((key, late) for late in outcome.late)


@dataclass(slots=True)
class _Entry:
    """A key: its windows, and the earliest moments it is listed under."""

    state: KeyState
    listed: At = _NOWHERE


class Bucket:
    """Takes what arrives and gives panes.

    What it has looked at stays in memory; :meth:`flush` writes what changed to the store, which
    then says everything there is to know. With no rule the watermark is the clock: windows in
    processing time.
    """

    def __init__(self, machine: PaneMachine, rule: WatermarkRule | None, store: Store) -> None:
        self._machine = machine
        self._store = store
        self._by_clock = rule is None
        self._mark = Watermark(rule or WatermarkRule())
        self._clock = 0
        self._entries: dict[bytes, _Entry] = {}
        self._dirty: set[bytes] = set()
        self._waiting = {"w": _Waiting("w", store), "c": _Waiting("c", store)}
        if (head := store.get(_HEAD)) is not None:
            _, self._clock, self._mark.value, sources, slots = decode(head)
            self._mark.sources = {name: SourceTime(*found) for name, found in sources.items()}
            for kind, waiting in self._waiting.items():
                waiting.chunks = slots[kind]

    @property
    def watermark(self) -> int:
        """How far event time has come."""
        return self._mark.value

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that have shown an event time."""
        return tuple(self._mark.sources)

    @property
    def newest(self) -> int | None:
        """The newest event time that was ever seen."""
        return max((each.newest for each in self._mark.sources.values()), default=None)

    def take(self, arrivals: Iterable[Arrivals]) -> Given:
        """Take everything that came in one moment, then what it and the clock have made due."""
        came = sorted(arrivals, key=lambda each: (each.source, each.position))
        self._clock = max([self._clock, *(each.clock for each in came)])
        before = At(self._mark.value, self._clock)
        given = Given(*before)
        touched: dict[bytes, _Entry] = {}
        # What came for one key is one batch, whichever source it is from.
        for key, elements in _gathered([each.elements for each in came]):
            entry = touched[key] = self._entry(key)
            given.take(key, self._machine.add(entry.state, elements, before))
        for key, partials in _gathered([each.partials for each in came]):
            entry = touched[key] = self._entry(key)
            given.take(key, self._machine.add_partials(entry.state, partials, before))
        for each in came:
            given.ahead += each.ahead
            if each.newest is not None:
                self._mark.see(each.source, each.newest, self._clock)
        given.newest = self.newest
        self._advance(self._now(), touched, given)
        return given

    def finish(self) -> Given:
        """Close every window: the input is at its end."""
        given = Given(END, self._clock)
        self._mark.value = END
        self._advance(At(END, self._clock), {}, given)
        return given

    def flush(self) -> None:
        """Write what changed since the last time."""
        for key in self._dirty:
            entry = self._entries[key]
            if entry.state.windows or entry.state.ordinal:
                self._store.put(b"k" + key, encode((*entry.listed, pack(entry.state))))
            else:
                self._store.delete(b"k" + key)
                del self._entries[key]
        self._dirty.clear()
        for waiting in self._waiting.values():
            waiting.flush()
        self._store.put(_HEAD, self._head())

    def trim(self, most: int) -> None:
        """Forget keys that are in the store, where more than so many are in memory."""
        if len(self._entries) > most:
            self._entries = {key: self._entries[key] for key in self._dirty}

    def wakes(self) -> int | None:
        """Return the clock from which on :meth:`take` has work without arrivals; None: never."""
        by_clock, by_watermark = self._waiting["c"].first, self._waiting["w"].first
        if by_watermark is not None and not self._by_clock:
            by_watermark = self._mark.wakes(by_watermark, self._clock)
        return min((each for each in (by_clock, by_watermark) if each is not None), default=None)

    def _now(self) -> At:
        if self._by_clock:
            self._mark.value = max(self._mark.value, self._clock)
            return At(self._mark.value, self._clock)
        return At(self._mark.at(self._clock), self._clock)

    def _advance(self, now: At, touched: dict[bytes, _Entry], given: Given) -> None:
        given.watermark = now.watermark
        for key in (*self._waiting["w"].due(now.watermark), *self._waiting["c"].due(now.clock)):
            if key not in touched:
                touched[key] = self._entry(key)
        for key, entry in touched.items():
            given.take(key, self._machine.advance(entry.state, now))
            self._keep(key, entry, now)

    def _entry(self, key: bytes) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            found = self._store.get(b"k" + key)
            if found is None:
                entry = _Entry(KeyState())
            else:
                watermark, clock, packed = decode(found)
                entry = _Entry(unpack(packed), At(watermark, clock))
            self._entries[key] = entry
        return entry

    def _keep(self, key: bytes, entry: _Entry, now: At) -> None:
        """Note that a key changed, and list it if it waits for an earlier moment than before."""
        self._dirty.add(key)
        wakes = self._machine.wakes(entry.state) if entry.state.windows else _NOWHERE
        watermark, clock = entry.listed
        # A listing that is due was taken out of its slot just now.
        watermark = NEVER if watermark <= now.watermark else watermark
        clock = NEVER if clock <= now.clock else clock
        if wakes.watermark < watermark:
            watermark = wakes.watermark
            self._waiting["w"].add(watermark, key)
        if wakes.clock < min(clock, END):
            clock = wakes.clock
            self._waiting["c"].add(clock, key)
        entry.listed = At(watermark, clock)

    def _head(self) -> bytes:
        sources = {
            name: (source.newest, source.seen_at) for name, source in self._mark.sources.items()
        }
        slots = {kind: waiting.chunks for kind, waiting in self._waiting.items()}
        return encode((_VERSION, self._clock, self._mark.value, sources, slots))


class _Waiting:
    """Keys that wait for moments: in the store by slot, in chunks, and lately in memory."""

    def __init__(self, kind: str, store: Store) -> None:
        self.chunks: dict[int, tuple[int, int]] = {}
        """By slot: how many chunks it has in the store, and the first moment waited for there."""
        self._kind = kind
        self._store = store
        self._lately: dict[int, list[tuple[int, bytes]]] = {}

    @property
    def first(self) -> int | None:
        """The first moment that a key waits for."""
        stored = (first for _, first in self.chunks.values())
        return min((*stored, *(rows[0][0] for rows in self._lately.values())), default=None)

    def add(self, moment: int, key: bytes) -> None:
        """Let a key wait for a moment."""
        insort(self._lately.setdefault(moment - moment % SLOT, []), (moment, key))

    def due(self, moment: int) -> Iterator[bytes]:
        """Yield the keys that wait for a moment which has come; those that wait on stay."""
        slots = {slot for slot, (_, first) in self.chunks.items() if first <= moment}
        slots |= {slot for slot, rows in self._lately.items() if rows[0][0] <= moment}
        for slot in sorted(slots):
            rows = self._lately.pop(slot, [])
            count, _ = self.chunks.pop(slot, (0, 0))
            for name in self._names(slot, range(count)):
                rows += decode(self._store.get(name) or encode([]))
                self._store.delete(name)
            yield from (key for waits_for, key in rows if waits_for <= moment)
            if rest := [(waits_for, key) for waits_for, key in rows if waits_for > moment]:
                self._lately[slot] = sorted(rest)

    def flush(self) -> None:
        """Write what is in memory as further chunks."""
        for slot, rows in self._lately.items():
            count, first = self.chunks.get(slot, (0, NEVER))
            for name in self._names(slot, (count,)):
                self._store.put(name, encode(rows))
            self.chunks[slot] = (count + 1, min(first, rows[0][0]))
        self._lately.clear()

    def _names(self, slot: int, numbers: Iterable[int]) -> list[bytes]:
        return [f"{self._kind}{slot}.{number}".encode() for number in numbers]


def _gathered(maps: Sequence[Mapping[bytes, list[T]]]) -> Iterable[tuple[bytes, list[T]]]:
    if len(maps) == 1:
        return maps[0].items()
    gathered: dict[bytes, list[T]] = {}
    for each in maps:
        for key, rows in each.items():
            gathered.setdefault(key, []).extend(rows)
    return gathered.items()
