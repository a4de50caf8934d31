"""Timers on a shelf: in memory are those that are due next, and those that changed.

On the shelf each timer stands under its key on the changelog, and an entry of an index stands under
the instant when it is due. The index is exact: both change in the same write. For each time there
is a **window** in memory: all timers up to a horizon, in order. What is set behind the horizon is
found when the window is empty and moves on.
"""

import heapq
from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any

from penstock.core.graph.timer import TimerTime
from penstock.services.state.timing.stores import (
    TIMER_PREFIXES,
    Entry,
    StoredTimer,
    TimerId,
    stored_timer,
    timer_key,
)

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["CACHED_TIMERS", "WINDOW", "ShelvedTimers"]

WINDOW = 10_000
"""So many timers of each time are in memory, the next that are due; at most twice as many."""
CACHED_TIMERS = 50_000
"""So many timers stay in memory from one commit to the next, besides."""

_COUNT_KEY = b"\x00\x00timers"
"""Where the shelf keeps how many there are: written with them, so that it is always right."""
_NOTHING_YET: Any = (-inf, b"", "")
_EVERYTHING: Any = (inf, b"", "")
_BIAS = 1 << 63
_INSTANT_BYTES = 8
_END_OF_KEY, _ZERO = b"\x00\x01", b"\x00\xff"
"""A zero byte of a key is written longer, so that the order of keys is that of their bytes."""


class ShelvedTimers:
    """Timers by what tells them apart, and in order of time. See :class:`TimerStore`."""

    def __init__(self, shelf: "Shelf") -> None:
        self._shelf = shelf
        self._known: dict[TimerId, StoredTimer | None] = {}
        self._saved_at: dict[TimerId, int | None] = {}
        """The timers that changed since they were saved: when they are due on the shelf."""
        self._windows = {time: _Window(self, time) for time in TIMER_PREFIXES}
        self._count: int | None = None
        self._saved_count: int | None = None

    def __len__(self) -> int:
        """Return how many are set."""
        if self._count is None:
            self._count = int(self._shelf.get(_COUNT_KEY) or 0)
        return self._count

    def get(self, timer: TimerId) -> StoredTimer | None:
        """Return a timer, or None where it is not set."""
        found = self._known.get(timer, self)
        if found is self:
            value = self._shelf.get(timer_key(timer))
            found = self._known[timer] = None if value is None else stored_timer(value)
        return found  # type: ignore[return-value] # self stands for what is not known

    def put(self, timer: TimerId, kept: StoredTimer) -> None:
        """Set a timer, or set it anew."""
        self._change(timer, kept)
        self._windows[timer.time].add((kept[0], timer.key, timer.name))

    def remove(self, timer: TimerId) -> None:
        """Forget a timer."""
        self._change(timer, None)

    def first(self, time: TimerTime) -> Entry | None:
        """Return the timer of a time that is due next."""
        return self._windows[time].first()

    def take_first(self, time: TimerTime) -> Entry:
        """Take the entry that ``first`` has just returned."""
        return heapq.heappop(self._windows[time].heap)

    def give_back(self, time: TimerTime, entry: Entry) -> None:
        """Take back an entry that was taken."""
        heapq.heappush(self._windows[time].heap, entry)

    def holds(self, time: TimerTime, entry: Entry) -> bool:
        """Return whether a timer is set for this instant."""
        kept = self.get(TimerId(time, entry[1], entry[2]))
        return kept is not None and kept[0] == entry[0]

    def saved(self, time: TimerTime, after: Entry) -> Iterator[Entry]:
        """Yield the timers on the shelf behind an entry that did not change, in order."""
        prefix = _index_prefix(time)
        start = b"" if after == _NOTHING_YET else _packed(after)
        for found in self._shelf.index(prefix, start=start):
            entry = _unpacked(found[len(prefix) :])
            if entry > after and TimerId(time, entry[1], entry[2]) not in self._saved_at:
                yield entry

    def unsaved(self, time: TimerTime) -> Iterator[Entry]:
        """Yield the timers that changed and are set, in no order."""
        for timer in self._saved_at:
            if timer.time == time and (kept := self._known[timer]) is not None:
                yield kept[0], timer.key, timer.name

    def take_changes(self) -> tuple[set[bytes], set[bytes]]:
        """Return the entries of the index to write and those to remove: they are saved now."""
        added, gone = set(), set()
        for timer, was in self._saved_at.items():
            kept = self._known[timer]
            now = None if kept is None else kept[0]
            if was != now:
                prefix = _index_prefix(timer.time)
                if was is not None:
                    gone.add(prefix + _packed((was, timer.key, timer.name)))
                if now is not None:
                    added.add(prefix + _packed((now, timer.key, timer.name)))
        self._saved_at.clear()
        return added, gone

    def take_facts(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what the shelf is to have besides, and the changelog is not."""
        if self._saved_count != len(self):
            self._saved_count = len(self)
            yield _COUNT_KEY, b"%d" % self._saved_count

    def trim(self) -> None:
        """Hear that everything is saved, and keep what is in memory bounded."""
        if len(self._known) > CACHED_TIMERS:
            self._known.clear()

    def _change(self, timer: TimerId, kept: StoredTimer | None) -> None:
        before = self.get(timer)
        if before is None and kept is None:
            return
        self._saved_at.setdefault(timer, None if before is None else before[0])
        self._count = len(self) + (kept is not None) - (before is not None)
        self._known[timer] = kept


class _Window:
    """The timers of one time up to a horizon: all of them, in a heap."""

    def __init__(self, timers: ShelvedTimers, time: TimerTime) -> None:
        self.heap: list[Entry] = []
        self._timers = timers
        self._time = time
        self._horizon: Entry = _NOTHING_YET

    def add(self, entry: Entry) -> None:
        """Take in a timer that was set; what is behind the horizon is found on the shelf."""
        if entry <= self._horizon:
            heapq.heappush(self.heap, entry)
            if len(self.heap) > 2 * WINDOW:
                self._draw_in()

    def first(self) -> Entry | None:
        """Return what is due next."""
        while True:
            while self.heap:
                if self._timers.holds(self._time, self.heap[0]):
                    return self.heap[0]
                heapq.heappop(self.heap)
            if self._horizon == _EVERYTHING:
                return None
            self._move_on()

    def _draw_in(self) -> None:
        """Leave out what no longer holds, and what is behind a horizon that is nearer."""
        kept = sorted({each for each in self.heap if self._timers.holds(self._time, each)})
        if len(kept) > WINDOW:
            self._horizon = kept[WINDOW - 1]
        self.heap[:] = kept[:WINDOW]

    def _move_on(self) -> None:
        """Take in what is behind the horizon, and move the horizon there."""
        after = self._horizon
        found = list(islice(self._timers.saved(self._time, after), WINDOW))
        self._horizon = found[-1] if len(found) == WINDOW else _EVERYTHING
        new = self._timers.unsaved(self._time)
        found += [each for each in new if after < each <= self._horizon]
        self.heap[:] = sorted(found)


def _index_prefix(time: TimerTime) -> bytes:
    return b"\x00" + time[:1].encode()


def _packed(entry: Entry) -> bytes:
    """Return an entry as bytes that stand in the order of entries."""
    at, key, name = entry
    instant = (at + _BIAS).to_bytes(_INSTANT_BYTES)
    return instant + key.replace(b"\x00", _ZERO) + _END_OF_KEY + name.encode()


def _unpacked(packed: bytes) -> Entry:
    key, _, name = packed[_INSTANT_BYTES:].partition(_END_OF_KEY)
    at = int.from_bytes(packed[:_INSTANT_BYTES]) - _BIAS
    return at, key.replace(_ZERO, b"\x00"), name.decode()
