"""A bucket of keys: their windows, their watermark, and which of them wait for what.

Every engine keeps its pane state in buckets: Spark one for each partition of its state store, a
service one for each task, the test driver likewise. A bucket is a few records in a store of bytes:

- ``h`` the head: the clock, the watermark, and how many chunks each slot has;
- ``k<key>`` a key: its windows, and the moments it is already listed under;
- ``w<slot>.<n>`` and ``c<slot>.<n>`` chunks: keys that wait for the watermark or for the clock,
  with the moment each waits for.

Whoever waits is appended to a chunk of the moment's slot (:mod:`penstock.core.panes.waiting`); when
a slot is due its chunks are read and deleted, so no key is read before it has work to do. However
many keys are due at once, they can be given in slices, with a flush and a restart between any two.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from penstock.core.panes.arrivals import Ahead, Arrivals
from penstock.core.panes.machine import KeyState, Outcome, PaneMachine, WindowState
from penstock.core.panes.packing import decode, encode, pack, unpack
from penstock.core.panes.pane import LateElement, Pane
from penstock.core.panes.store import Store
from penstock.core.panes.times import END, NEVER, At
from penstock.core.panes.waiting import Waiting
from penstock.core.panes.watermark import SourceTime, Watermark, WatermarkRule
from penstock.core.panes.windows import Window

__all__ = ["GROUP_PREFIX", "Bucket", "BucketOutput", "windows_of"]

T = TypeVar("T")

_HEAD = b"h"
GROUP_PREFIX = b"k"
"""What the record of a key begins with in the store."""
_VERSION = 1
_NOWHERE = At(NEVER, NEVER)


@dataclass(slots=True)
class BucketOutput:
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

    ``order`` says in which order due keys are best looked at in the store. All of them are then
    listed at once, and not in the store any more: :meth:`more` must be called until none is left
    before what was flushed is made durable.
    """

    def __init__(
        self,
        machine: PaneMachine,
        rule: WatermarkRule | None,
        store: Store,
        *,
        order: Callable[[bytes], int] | None = None,
    ) -> None:
        self._machine = machine
        self._store = store
        self._by_clock = rule is None
        self._mark = Watermark(rule or WatermarkRule())
        self._clock = 0
        self._entries: dict[bytes, _Entry] = {}
        self._dirty: set[bytes] = set()
        self._order = order
        self._listed: list[bytes] = []
        """Due keys in the order of the store, the next one last."""
        self._waiting = {"w": Waiting("w", store), "c": Waiting("c", store)}
        if (head := store.get(_HEAD)) is not None:
            _, self._clock, self._mark.value, sources, slots = decode(head)
            self._mark.sources = {name: SourceTime(*found) for name, found in sources.items()}
            for kind, waiting in self._waiting.items():
                waiting.load(slots[kind])
            self._come()

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

    @property
    def pending(self) -> bool:
        """Whether keys are due that :meth:`more` has not given yet."""
        if self._listed:
            return True
        by_watermark, by_clock = self._waiting["w"], self._waiting["c"]
        return by_watermark.is_due(self._mark.value) or by_clock.is_due(self._clock)

    def take(self, arrivals: Iterable[Arrivals], *, limit: int | None = None) -> BucketOutput:
        """Take everything that came in one moment, then what it and the clock have made due.

        Of keys that nothing came for about ``limit`` are looked at; :meth:`more` goes on with the
        others. Call it until nothing is pending before a later moment is taken: windows that are
        due would otherwise be given as of that one.
        """
        came = sorted(arrivals, key=lambda each: (each.source, each.position))
        # A key that is due and was not given yet is given first, as of the moment before.
        past = At(self._mark.value, self._clock) if self.pending else None
        self._clock = max([self._clock, *(each.clock for each in came)])
        before = At(self._mark.value, self._clock)
        given = BucketOutput(*before)
        touched: dict[bytes, _Entry] = {}
        # What came for one key is one batch, whichever source it is from.
        for key, elements in _gathered([each.elements for each in came]):
            entry = touched[key] = self._touched(key, past, given)
            given.take(key, self._machine.add(entry.state, elements, before))
        for key, partials in _gathered([each.partials for each in came]):
            entry = touched[key] = self._touched(key, past, given)
            given.take(key, self._machine.add_partials(entry.state, partials, before))
        for each in came:
            given.ahead += each.ahead
            if each.newest is not None:
                self._mark.see(each.source, each.newest, self._clock)
        given.newest = self.newest
        now = self._now()
        self._come()
        given.watermark = now.watermark
        for key, entry in touched.items():
            given.take(key, self._machine.advance(entry.state, now))
            self._keep(key, entry, now)
        self._go_on(now, given, limit)
        return given

    def more(self, limit: int | None = None) -> BucketOutput:
        """Go on with what is due, about so many keys."""
        now = At(self._mark.value, self._clock)
        given = BucketOutput(*now, newest=self.newest)
        self._go_on(now, given, limit)
        return given

    def finish(self) -> BucketOutput:
        """Close every window: the input is at its end."""
        self._mark.value = END
        return self.more()

    def flush(self) -> None:
        """Write what changed since the last time."""
        for key in self._dirty:
            entry = self._entries[key]
            if entry.state.windows or entry.state.ordinal:
                self._store.put(GROUP_PREFIX + key, encode((*entry.listed, pack(entry.state))))
            else:
                self._store.delete(GROUP_PREFIX + key)
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
        """Return the clock from which on there is work without arrivals; None: never."""
        if self.pending:
            return self._clock
        by_clock, by_watermark = self._waiting["c"].first, self._waiting["w"].first
        if by_watermark is not None and not self._by_clock:
            by_watermark = self._mark.wakes(by_watermark, self._clock)
        return min((each for each in (by_clock, by_watermark) if each is not None), default=None)

    def _now(self) -> At:
        if self._by_clock:
            self._mark.value = max(self._mark.value, self._clock)
            return At(self._mark.value, self._clock)
        return At(self._mark.at(self._clock), self._clock)

    def _come(self) -> None:
        """Let those that come to wait do so as of now."""
        self._waiting["w"].now, self._waiting["c"].now = self._mark.value, self._clock

    def _touched(self, key: bytes, past: At | None, given: BucketOutput) -> _Entry:
        entry = self._entry(key)
        if past is not None and _is_due(entry, past):
            given.take(key, self._machine.advance(entry.state, past))
            self._keep(key, entry, past)
        return entry

    def _go_on(self, now: At, given: BucketOutput, limit: int | None) -> None:
        looked_at = 0
        while (limit is None or looked_at < limit) and (keys := self._due(now, limit)):
            looked_at += len(keys)
            for key in keys:
                entry = self._entry(key)
                # It may have been looked at since it was listed, or be listed twice.
                if _is_due(entry, now):
                    given.take(key, self._machine.advance(entry.state, now))
                    self._keep(key, entry, now)

    def _due(self, now: At, limit: int | None) -> list[bytes]:
        by_watermark, by_clock = self._waiting["w"], self._waiting["c"]
        if self._order is None:
            return by_watermark.due(now.watermark) or by_clock.due(now.clock)
        if not self._listed:
            found: set[bytes] = set()
            while keys := by_watermark.due(now.watermark) or by_clock.due(now.clock):
                found.update(keys)
            self._listed = sorted(found, key=self._order, reverse=True)
        cut = 0 if limit is None else max(0, len(self._listed) - limit)
        keys, self._listed = self._listed[cut:], self._listed[:cut]
        return keys[::-1]

    def _entry(self, key: bytes) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            found = self._store.get(GROUP_PREFIX + key)
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
        # What is due and has nothing to give yet is looked at again later, not for ever now.
        wakes = At(max(wakes.watermark, now.watermark + 1), max(wakes.clock, now.clock + 1))
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
        slots = {kind: waiting.slots() for kind, waiting in self._waiting.items()}
        return encode((_VERSION, self._clock, self._mark.value, sources, slots))


def windows_of(record: bytes) -> Mapping[Window, WindowState]:
    """Return the windows that a key's record in the store holds."""
    _, _, packed = decode(record)
    return unpack(packed).windows


def _is_due(entry: _Entry, now: At) -> bool:
    return entry.listed.watermark <= now.watermark or entry.listed.clock <= now.clock


def _gathered(maps: Sequence[Mapping[bytes, list[T]]]) -> Iterable[tuple[bytes, list[T]]]:
    if len(maps) == 1:
        return maps[0].items()
    gathered: dict[bytes, list[T]] = {}
    for each in maps:
        for key, rows in each.items():
            gathered.setdefault(key, []).extend(rows)
    return gathered.items()
