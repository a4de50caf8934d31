"""The timers of one task: in order of time, kept on the changelog beside the states.

A timer's changelog key is a zero byte, its time, a zero byte, its name, a zero byte and the record
key; its value is a JSON array of the instant in microseconds and the payload. No value: it was
cancelled or has gone off.
"""

import heapq
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from penstock.core.graph.state import CallScope
from penstock.core.graph.timer import Timer, TimerTime
from penstock.core.instants import FIRST_MICROS, LAST_MICROS, instant, micros
from penstock.services.state.codec import check_size
from penstock.services.state.eventtime import TaskEventTime

__all__ = ["EVENT_TIME_KEY", "TIMER_PREFIXES", "Due", "TimerQueue", "timer_json"]

EVENT_TIME_KEY = b"\x00time"
"""The changelog key under which the task's event time is kept."""
TIMER_PREFIXES: dict[bytes, TimerTime] = {
    b"\x00event\x00": "event",
    b"\x00processing\x00": "processing",
}
_PREFIX_OF = {time: prefix for prefix, time in TIMER_PREFIXES.items()}
_STALE_LIMIT = 64
"""How many entries that no longer hold a heap may have beside as many that do."""

_ENCODER = msgspec.json.Encoder()
_Kept = tuple[int, bytes]
"""When it is due, and its payload as JSON."""


class Due(NamedTuple):
    """A timer that has been taken from the queue."""

    at: int
    key: bytes
    name: str
    time: TimerTime
    payload: bytes


_Id = tuple[TimerTime, bytes, str]


def timer_json(due: Due) -> bytes:
    """Return a timer as its dead letter holds it."""
    told = {"name": due.name, "time": due.time, "due_at": instant(due.at)}
    return _ENCODER.encode(told | {"payload": msgspec.Raw(due.payload)})


class TimerQueue:
    """Timers by (time, key, name); those of one time go off in order of (instant, key, name)."""

    def __init__(self, event_time: TaskEventTime, *, clock: Callable[[], datetime]) -> None:
        self.event_time = event_time
        self._clock = clock
        self._kept: dict[_Id, _Kept] = {}
        self._heaps: dict[TimerTime, list[tuple[int, bytes, str]]] = {"event": [], "processing": []}
        self._changed: set[_Id] = set()

    def __len__(self) -> int:
        """Return how many timers are set."""
        return len(self._kept)

    def put(
        self, here: CallScope, time: TimerTime, name: str, due_at: datetime, payload: Any
    ) -> None:
        """Set a timer of the key, or set it anew.

        Where another is going off, none of its time may be set before it: a chain always gets on.
        """
        if time == "event" and not self.event_time.known:
            raise ValueError(f'timer {name!r}: no record here has an event time; time="processing"')
        at, firing = micros(due_at), here.firing
        if not FIRST_MICROS <= at <= LAST_MICROS:
            raise ValueError(f"timer {name!r}: {due_at} is not in the years 1 to 9999 of UTC")
        if firing is not None and time == firing.time and at <= firing.at:
            raise ValueError(
                f"timer {name!r} must be due after {firing.name!r}, which is going off"
            )
        encoded = _ENCODER.encode(payload)
        if msgspec.json.decode(encoded) != payload:
            raise TypeError(f"the payload of timer {name!r} is not what JSON can hold: {payload!r}")
        check_size(f"timer {name!r}", len(name.encode()) + len(here.key) + len(encoded))
        timer = (time, here.key, name)
        self._remember(here, timer)
        self._kept[timer] = (at, encoded)
        self._push(timer, at)

    def drop(self, here: CallScope, time: TimerTime, name: str) -> None:
        """Forget a timer of the key; nothing happens where it is not set."""
        timer = (time, here.key, name)
        if timer in self._kept:
            self._remember(here, timer)
            del self._kept[timer]

    def due_at(self, time: TimerTime, key: bytes, name: str) -> datetime | None:
        """Return when a timer is due; None: it is not set."""
        kept = self._kept.get((time, key, name))
        return None if kept is None else instant(kept[0])

    def now_at(self, here: CallScope, time: TimerTime) -> datetime:
        """Return when a call happens in a time; ValueError where there is no event time."""
        if time == "processing":
            return self._clock()
        if here.firing is None and here.happened is not None:
            return instant(here.happened)
        reached = self.event_time.micros if here.reached is None else here.reached
        if reached is None:
            raise ValueError('no record here has had an event time; use time="processing"')
        return instant(reached)

    def restore(self, timer: _Id, before: _Kept | None) -> None:
        """Take back a change."""
        if before is None:
            self._kept.pop(timer, None)
        else:
            self._kept[timer] = before
            self._push(timer, before[0])

    def first(self, time: TimerTime) -> int | None:
        """Return when the next timer of a time is due."""
        heap = self._heaps[time]
        while heap:
            at, key, name = heap[0]
            kept = self._kept.get((time, key, name))
            if kept is not None and kept[0] == at:
                return at
            heapq.heappop(heap)
        return None

    def pop(self, time: TimerTime, until: int) -> Due | None:
        """Take out the next timer that is due by an instant; None: there is none."""
        at = self.first(time)
        if at is None or at > until:
            return None
        _, key, name = heapq.heappop(self._heaps[time])
        timer = (time, key, name)
        self._changed.add(timer)
        return Due(at, key, name, time, self._kept.pop(timer)[1])

    def point(self, time: TimerTime, until: int) -> tuple[int, bytes, str] | None:
        """Give the next timer that is due by an instant to whoever lets it go off with ``take``.

        It stays set, and is not given again unless it is set again or ``point_again`` says so.
        """
        at = self.first(time)
        return None if at is None or at > until else heapq.heappop(self._heaps[time])

    def point_again(self, time: TimerTime, key: bytes, name: str, at: int) -> None:
        """Hear that a timer which was given did not go off."""
        heapq.heappush(self._heaps[time], (at, key, name))

    def take(self, time: TimerTime, key: bytes, name: str, at: int) -> Due | None:
        """Take out a timer; None: it is not set for this instant any more."""
        timer = (time, key, name)
        kept = self._kept.get(timer)
        if kept is None or kept[0] != at:
            return None
        del self._kept[timer]
        self._changed.add(timer)
        return Due(at, key, name, time, kept[1])

    def put_back(self, due: Due) -> None:
        """Set a timer again as it was before it was taken out."""
        timer = (due.time, due.key, due.name)
        self._kept[timer] = (due.at, due.payload)
        self._changed.add(timer)
        self._push(timer, due.at)

    def timer_of(self, due: Due, *, reached: int | None = None) -> Timer:
        """Return a timer as the user's code gets it; ``reached``: how far event time is for it."""
        reached = self.event_time.micros if reached is None else reached
        return Timer(
            name=due.name,
            key=due.key.decode(),
            due_at=instant(due.at),
            time=due.time,
            payload=msgspec.json.decode(due.payload),
            now_at=self._clock(),
            event_time_at=None if reached is None else instant(reached),
        )

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield a changelog record for every timer that changed since the last commit."""
        for timer in self._changed:
            time, key, name = timer
            kept = self._kept.get(timer)
            value = None if kept is None else b"[%d,%s]" % kept
            yield _PREFIX_OF[time] + name.encode() + b"\x00" + key, value
        if self.event_time.changed:
            yield EVENT_TIME_KEY, self.event_time.dump()

    def settle(self) -> None:
        """Forget what changed: its changelog records are committed."""
        self._changed.clear()
        self.event_time.changed = False

    def apply(self, time: TimerTime, rest: bytes, value: bytes | None) -> None:
        """Take in one record of the changelog, its key without the prefix."""
        name, _, key = rest.partition(b"\x00")
        timer = (time, key, name.decode())
        if value is None:
            self._kept.pop(timer, None)
            return
        at, payload = msgspec.json.decode(value, type=tuple[int, msgspec.Raw])
        self._kept[timer] = (at, bytes(payload))
        self._push(timer, at)

    def _remember(self, here: CallScope, timer: _Id) -> None:
        here.undo.append((self, timer, self._kept.get(timer)))
        self._changed.add(timer)

    def _push(self, timer: _Id, at: int) -> None:
        """Put a timer into its heap; entries that no longer hold are left out now and then."""
        time, key, name = timer
        heap = self._heaps[time]
        if len(heap) >= 2 * len(self._kept) + _STALE_LIMIT:
            heap[:] = [
                (kept[0], key, name)
                for (kind, key, name), kept in self._kept.items()
                if kind == time
            ]
            heapq.heapify(heap)
        else:
            heapq.heappush(heap, (at, key, name))
