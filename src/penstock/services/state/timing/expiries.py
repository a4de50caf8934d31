"""When the values of a state with a time to live expire: in memory, or in order on a shelf.

On a shelf no key is held in memory: beside each value stands an entry under the moment of its
expiry, rounded up so that a value that is written again and again has a few of them and not one for
each time. An entry is a hint: whether its value has expired is said by the value.
"""

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["SWEEP_LIMIT", "Expiries", "HeldExpiries", "ShelvedExpiries"]

SWEEP_LIMIT = 10_000
"""So many values are looked at in one sweep; the next one goes on."""

_GRAINS = 16
"""A value has at most about so many entries at a time."""
_LEAST_GRAIN = 1_000_000
_MOMENT_BYTES = 8


class Expiries(Protocol):
    """The places of one state by when they may expire, in microseconds."""

    def add(self, place: bytes, at: int) -> None:
        """Hear when a place expires that was written."""

    def first(self) -> int | None:
        """Return when something may expire next."""

    def due(self, now: int) -> Iterator[bytes]:
        """Yield places that may have expired by now, each once, a bounded number of them."""


class HeldExpiries:
    """In memory: an entry for each place."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, bytes]] = []
        self._queued: set[bytes] = set()

    def __len__(self) -> int:
        """Return how many places wait for their turn."""
        return len(self._heap)

    def add(self, place: bytes, at: int) -> None:
        """Queue a place, unless it is: when its turn comes it says itself until when it is."""
        if place not in self._queued:
            self._queued.add(place)
            heapq.heappush(self._heap, (at, place))

    def first(self) -> int | None:
        """Return when something may expire next."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: int) -> Iterator[bytes]:
        """Yield the places whose turn it is."""
        for _ in range(SWEEP_LIMIT):
            if not self._heap or self._heap[0][0] > now:
                return
            _, place = heapq.heappop(self._heap)
            self._queued.discard(place)
            yield place


class ShelvedExpiries:
    """On a shelf; what was added or has had its turn is written there with the next commit."""

    def __init__(self, shelf: "Shelf", *, prefix: bytes, lifetime: int) -> None:
        self._shelf = shelf
        self._prefix = prefix
        self._grain = max(_LEAST_GRAIN, lifetime // _GRAINS)
        self._added: set[bytes] = set()
        self._gone: set[bytes] = set()
        self._first: int | None = None
        self._looked = False

    def add(self, place: bytes, at: int) -> None:
        """Note a place under its moment."""
        moment = -(-max(at, 0) // self._grain) * self._grain
        entry = self._prefix + moment.to_bytes(_MOMENT_BYTES) + place
        self._added.add(entry)
        self._gone.discard(entry)

    def first(self) -> int | None:
        """Return when something may expire next, of what is committed."""
        if not self._looked:
            self._first = next((moment for moment, _ in self._entries()), None)
            self._looked = True
        return self._first

    def due(self, now: int) -> Iterator[bytes]:
        """Yield the places whose turn it is."""
        first = self.first()
        if first is None or first > now:
            return
        for found, (moment, entry) in enumerate(self._entries()):
            if moment > now or found == SWEEP_LIMIT:
                self._first = moment
                return
            self._gone.add(entry)
            yield entry[len(self._prefix) + _MOMENT_BYTES :]
        self._first = None

    def take_changes(self) -> tuple[set[bytes], set[bytes]]:
        """Return the entries to write and those to remove, and forget them."""
        added, gone = self._added, self._gone - self._added
        self._added, self._gone = set(), set()
        if added and self._looked:
            cut = len(self._prefix)
            least = min(entry[cut : cut + _MOMENT_BYTES] for entry in added)
            moment = int.from_bytes(least)
            self._first = moment if self._first is None else min(self._first, moment)
        return added, gone

    def _entries(self) -> Iterator[tuple[int, bytes]]:
        cut = len(self._prefix)
        for entry in self._shelf.index(self._prefix):
            if entry not in self._gone:
                yield int.from_bytes(entry[cut : cut + _MOMENT_BYTES]), entry
