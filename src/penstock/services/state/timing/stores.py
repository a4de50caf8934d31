"""Where the timers of a task are, what tells them apart, and how they lie on the changelog."""

import heapq
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from penstock.core.graph.timer import TimerTime

__all__ = [
    "TIMER_PREFIXES",
    "Entry",
    "HeldTimers",
    "StoredTimer",
    "TimerId",
    "TimerStore",
    "stored_timer",
    "timer_key",
    "timer_value",
]

TIMER_PREFIXES: dict[TimerTime, bytes] = {
    "event": b"\x00event\x00",
    "processing": b"\x00processing\x00",
}
"""What the changelog keys of timers begin with."""

_STALE_LIMIT = 64
"""How many entries that no longer hold a heap may have beside as many that do."""


class TimerId(NamedTuple):
    """What tells a timer from all others of its task."""

    time: TimerTime
    key: bytes
    name: str


StoredTimer: TypeAlias = tuple[int, bytes]
"""When it is due, and its payload as JSON."""
Entry: TypeAlias = tuple[int, bytes, str]
"""When a timer is due, its key and its name: timers go off in this order."""


def timer_key(timer: TimerId) -> bytes:
    """Return the key of a timer on the changelog."""
    return TIMER_PREFIXES[timer.time] + timer.name.encode() + b"\x00" + timer.key


def timer_value(kept: StoredTimer) -> bytes:
    """Return the value of a timer on the changelog."""
    return b"[%d,%s]" % kept


def stored_timer(value: bytes) -> StoredTimer:
    """Return a timer that a value of the changelog holds."""
    at, payload = msgspec.json.decode(value, type=tuple[int, msgspec.Raw])
    return at, bytes(payload)


class TimerStore(Protocol):
    """The timers that are set, each time's in order.

    An entry that was taken stays taken until it is given back, or until its timer is set again.
    """

    def __len__(self) -> int:
        """Return how many are set."""

    def get(self, timer: TimerId) -> StoredTimer | None:
        """Return a timer, or None where it is not set."""

    def put(self, timer: TimerId, kept: StoredTimer) -> None:
        """Set a timer, or set it anew."""

    def remove(self, timer: TimerId) -> None:
        """Forget a timer; nothing happens where it is not set."""

    def first(self, time: TimerTime) -> Entry | None:
        """Return the timer of a time that is due next; None: there is none."""

    def take_first(self, time: TimerTime) -> Entry:
        """Take the entry that ``first`` has just returned; its timer stays set."""

    def give_back(self, time: TimerTime, entry: Entry) -> None:
        """Take back an entry that was taken, its timer being set still."""

    def trim(self) -> None:
        """Hear that everything is saved: what is in memory is to be bounded."""


class HeldTimers:
    """Timers in memory, with a heap for each time."""

    def __init__(self) -> None:
        # By plain tuples, which cost less to make: for every record it is asked what is due.
        self._kept: dict[tuple[TimerTime, bytes, str], StoredTimer] = {}
        self._heaps: dict[TimerTime, list[Entry]] = {"event": [], "processing": []}

    def __len__(self) -> int:
        """Return how many are set."""
        return len(self._kept)

    def get(self, timer: TimerId) -> StoredTimer | None:
        """Return a timer, or None where it is not set."""
        return self._kept.get(timer)

    def put(self, timer: TimerId, kept: StoredTimer) -> None:
        """Set a timer; entries that no longer hold are left out of its heap now and then."""
        self._kept[timer] = kept
        heap = self._heaps[timer.time]
        if len(heap) >= 2 * len(self._kept) + _STALE_LIMIT:
            heap[:] = [
                (found[0], key, name)
                for (time, key, name), found in self._kept.items()
                if time == timer.time
            ]
            heapq.heapify(heap)
        else:
            heapq.heappush(heap, (kept[0], timer.key, timer.name))

    def remove(self, timer: TimerId) -> None:
        """Forget a timer."""
        self._kept.pop(timer, None)

    def first(self, time: TimerTime) -> Entry | None:
        """Return the timer of a time that is due next."""
        heap = self._heaps[time]
        while heap:
            at, key, name = heap[0]
            kept = self._kept.get((time, key, name))
            if kept is not None and kept[0] == at:
                return heap[0]
            heapq.heappop(heap)
        return None

    def take_first(self, time: TimerTime) -> Entry:
        """Take the entry that ``first`` has just returned."""
        return heapq.heappop(self._heaps[time])

    def give_back(self, time: TimerTime, entry: Entry) -> None:
        """Take back an entry that was taken."""
        heapq.heappush(self._heaps[time], entry)

    def trim(self) -> None:
        """Do nothing: all of them are in memory."""
