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
    """Takes what arrives and gives panes; all it remembers is in its store.

    With no rule the watermark is the clock: windows in processing time.
    """

    def __init__(self, machine: PaneMachine, rule: WatermarkRule | None, store: Store) -> None:
        self._machine = machine
        self._store = store
        self._by_clock = rule is None
        self._mark = Watermark(rule or WatermarkRule())
        self._clock = 0
        self._slots: dict[str, dict[int, int]] = {"w": {}, "c": {}}
        self._waiting: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
        if (head := store.get(_HEAD)) is not None:
            self._read_head(head)

    @property
    def watermark(self) -> int:
        """How far event time has come."""
        return self._mark.value

    def take(self, arrivals: Iterable[Arrivals]) -> Given:
        """Take everything that came in one moment, then what it and the clock have made due."""
        came = sorted(arrivals, key=lambda each: (each.source, each.position))
        self._clock = max([self._clock, *(each.clock for each in came)])
        before = At(self._mark.value, self._clock)
        given = Given(*before)
        touched: dict[bytes, _Entry] = {}
        # What came for one key is one batch, whichever source it is from.
        for key, elements in _gathered([each.elements for each in came]):
            entry = self._touch(key, touched)
            given.take(key, self._machine.add(entry.state, elements, before))
        for key, partials in _gathered([each.partials for each in came]):
            entry = self._touch(key, touched)
            given.take(key, self._machine.add_partials(entry.state, partials, before))
        for each in came:
            given.ahead += each.ahead
            if each.newest is not None:
                self._mark.see(each.source, each.newest, self._clock)
        self._advance(self._now(), touched, given)
        return given

    def finish(self) -> Given:
        """Close every window: the input is at its end."""
        given = Given(END, self._clock)
        self._mark.value = END
        self._advance(At(END, self._clock), {}, given)
        return given

    def wakes(self) -> int | None:
        """Return the clock from which on :meth:`take` has work without arrivals; None: never."""
        moments = [slot for slot in (min(self._slots["c"], default=None),) if slot is not None]
        if self._slots["w"]:
            if self._by_clock:
                moments.append(min(self._slots["w"]))
            elif (moment := self._mark.wakes()) is not None:
                moments.append(moment)
        return max(self._clock, min(moments)) if moments else None

    def _now(self) -> At:
        if self._by_clock:
            self._mark.value = max(self._mark.value, self._clock)
            return At(self._mark.value, self._clock)
        return At(self._mark.at(self._clock), self._clock)

    def _advance(self, now: At, touched: dict[bytes, _Entry], given: Given) -> None:
        given.watermark = now.watermark
        for key in (*self._due("w", now.watermark), *self._due("c", now.clock)):
            self._touch(key, touched)
        for key, entry in touched.items():
            given.take(key, self._machine.advance(entry.state, now))
            self._keep(key, entry, now)
        self._write_waiting()
        self._store.put(_HEAD, self._head())

    def _touch(self, key: bytes, touched: dict[bytes, _Entry]) -> _Entry:
        entry = touched.get(key)
        if entry is None:
            entry = touched[key] = self._load(key)
        return entry

    def _load(self, key: bytes) -> _Entry:
        found = self._store.get(b"k" + key)
        if found is None:
            return _Entry(KeyState())
        watermark, clock, packed = decode(found)
        return _Entry(unpack(packed), At(watermark, clock))

    def _keep(self, key: bytes, entry: _Entry, now: At) -> None:
        """Write a key back, and list it where it waits for an earlier moment than it is listed."""
        if not entry.state.windows and not entry.state.ordinal:
            self._store.delete(b"k" + key)
            return
        wakes = self._machine.wakes(entry.state)
        watermark, clock = entry.listed
        # A listing that is due was taken out of its slot just now.
        watermark = NEVER if watermark <= now.watermark else watermark
        clock = NEVER if clock <= now.clock else clock
        if wakes.watermark < watermark:
            watermark = wakes.watermark
            self._waiting.setdefault(("w", _slot(watermark)), []).append((watermark, key))
        if wakes.clock < min(clock, END):
            clock = wakes.clock
            self._waiting.setdefault(("c", _slot(clock)), []).append((clock, key))
        self._store.put(b"k" + key, encode((watermark, clock, pack(entry.state))))

    def _due(self, kind: str, moment: int) -> Iterator[bytes]:
        """Yield the keys that wait for a moment which has come; keep those that wait on."""
        slots = self._slots[kind]
        for slot in sorted(slot for slot in slots if slot <= moment):
            for number in range(slots.pop(slot)):
                name = _chunk(kind, slot, number)
                for waits_for, key in decode(self._store.get(name) or encode([])):
                    if waits_for <= moment:
                        yield key
                    else:
                        self._waiting.setdefault((kind, slot), []).append((waits_for, key))
                self._store.delete(name)

    def _write_waiting(self) -> None:
        for (kind, slot), rows in self._waiting.items():
            number = self._slots[kind].get(slot, 0)
            self._store.put(_chunk(kind, slot, number), encode(rows))
            self._slots[kind][slot] = number + 1
        self._waiting.clear()

    def _head(self) -> bytes:
        sources = {
            name: (source.newest, source.seen_at) for name, source in self._mark.sources.items()
        }
        return encode((_VERSION, self._clock, self._mark.value, sources, self._slots))

    def _read_head(self, head: bytes) -> None:
        _, self._clock, self._mark.value, sources, slots = decode(head)
        self._mark.sources = {name: SourceTime(*found) for name, found in sources.items()}
        self._slots = slots


def _gathered(maps: Sequence[Mapping[bytes, list[T]]]) -> Iterable[tuple[bytes, list[T]]]:
    if len(maps) == 1:
        return maps[0].items()
    gathered: dict[bytes, list[T]] = {}
    for each in maps:
        for key, rows in each.items():
            gathered.setdefault(key, []).extend(rows)
    return gathered.items()


def _slot(moment: int) -> int:
    return moment - moment % SLOT


def _chunk(kind: str, slot: int, number: int) -> bytes:
    return f"{kind}{slot}.{number}".encode()
