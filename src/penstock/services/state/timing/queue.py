"""The timers of one task: in order of time, kept on the changelog beside the states.

A timer's changelog key is a zero byte, its time, a zero byte, its name, a zero byte and the record
key; its value is a JSON array of the instant in microseconds and the payload. No value: it was
cancelled or has gone off.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from penstock.core.graph.state import CallScope
from penstock.core.graph.timer import Timer, TimerTime
from penstock.core.instants import FIRST_MICROS, LAST_MICROS, instant, micros
from penstock.services.state.codec import check_size
from penstock.services.state.timing.eventtime import TaskEventTime
from penstock.services.state.timing.stores import (
    TIMER_PREFIXES,
    HeldTimers,
    StoredTimer,
    TimerId,
    TimerStore,
    stored_timer,
    timer_key,
    timer_value,
)

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["EVENT_TIME_KEY", "Due", "TimerQueue", "time_of", "timer_json"]

EVENT_TIME_KEY = b"\x00time"
"""The changelog key under which the task's event time is kept."""

_TIMES: dict[bytes, TimerTime] = {prefix: time for time, prefix in TIMER_PREFIXES.items()}
_ENCODER = msgspec.json.Encoder()


class Due(NamedTuple):
    """A timer that has been taken from the queue."""

    at: int
    key: bytes
    name: str
    time: TimerTime
    payload: bytes


def time_of(key: bytes) -> TimerTime | None:
    """Return the time of the timer that a key of the changelog is of; None: it is of none."""
    return _TIMES.get(key[: key.find(b"\x00", 1) + 1])


def timer_json(due: Due) -> bytes:
    """Return a timer as its dead letter holds it."""
    shown = {"name": due.name, "time": due.time, "due_at": instant(due.at)}
    return _ENCODER.encode(shown | {"payload": msgspec.Raw(due.payload)})


class TimerQueue:
    """Timers by (time, key, name); those of one time go off in order of (instant, key, name).

    They are in memory, or on a ``shelf``.
    """

    def __init__(
        self,
        event_time: TaskEventTime,
        *,
        clock: Callable[[], datetime],
        shelf: "Shelf | None" = None,
    ) -> None:
        self.event_time = event_time
        self._clock = clock
        self.store: TimerStore = HeldTimers()
        """Where they are."""
        if shelf is not None:
            from penstock.services.state.timing.shelved import ShelvedTimers

            self.store = ShelvedTimers(shelf)
        self._changed: set[TimerId] = set()

    def __len__(self) -> int:
        """Return how many timers are set."""
        return len(self.store)

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
        timer = TimerId(time, here.key, name)
        self._remember(here, timer)
        self.store.put(timer, (at, encoded))

    def drop(self, here: CallScope, time: TimerTime, name: str) -> None:
        """Forget a timer of the key; nothing happens where it is not set."""
        timer = TimerId(time, here.key, name)
        if self.store.get(timer) is not None:
            self._remember(here, timer)
            self.store.remove(timer)

    def due_at(self, time: TimerTime, key: bytes, name: str) -> datetime | None:
        """Return when a timer is due; None: it is not set."""
        kept = self.store.get(TimerId(time, key, name))
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

    def restore(self, timer: TimerId, before: StoredTimer | None) -> None:
        """Take back a change."""
        if before is None:
            self.store.remove(timer)
        else:
            self.store.put(timer, before)

    def first(self, time: TimerTime) -> int | None:
        """Return when the next timer of a time is due."""
        entry = self.store.first(time)
        return None if entry is None else entry[0]

    def pop(self, time: TimerTime, until: int) -> Due | None:
        """Take out the next timer that is due by an instant; None: there is none."""
        entry = self.store.first(time)
        if entry is None or entry[0] > until:
            return None
        at, key, name = self.store.take_first(time)
        return self.take(time, key, name, at)

    def point(self, time: TimerTime, until: int) -> tuple[int, bytes, str] | None:
        """Give the next timer that is due by an instant to whoever lets it go off with ``take``.

        It stays set, and is not given again unless it is set again or ``point_again`` says so.
        """
        entry = self.store.first(time)
        return None if entry is None or entry[0] > until else self.store.take_first(time)

    def point_again(self, time: TimerTime, key: bytes, name: str, at: int) -> None:
        """Hear that a timer which was given did not go off."""
        self.store.give_back(time, (at, key, name))

    def take(self, time: TimerTime, key: bytes, name: str, at: int) -> Due | None:
        """Take out a timer; None: it is not set for this instant any more."""
        timer = TimerId(time, key, name)
        kept = self.store.get(timer)
        if kept is None or kept[0] != at:
            return None
        self.store.remove(timer)
        self._changed.add(timer)
        return Due(at, key, name, time, kept[1])

    def put_back(self, due: Due) -> None:
        """Set a timer again as it was before it was taken out."""
        timer = TimerId(due.time, due.key, due.name)
        self.store.put(timer, (due.at, due.payload))
        self._changed.add(timer)

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
            kept = self.store.get(timer)
            yield timer_key(timer), None if kept is None else timer_value(kept)
        if self.event_time.changed:
            yield EVENT_TIME_KEY, self.event_time.dump()

    def settle(self) -> None:
        """Forget what changed: its changelog records are committed."""
        self._changed.clear()
        self.event_time.changed = False

    def apply(self, time: TimerTime, key: bytes, value: bytes | None) -> None:
        """Take in one record of the changelog."""
        name, _, own = key[len(TIMER_PREFIXES[time]) :].partition(b"\x00")
        timer = TimerId(time, own, name.decode())
        if value is None:
            self.store.remove(timer)
        else:
            self.store.put(timer, stored_timer(value))

    def _remember(self, here: CallScope, timer: TimerId) -> None:
        here.undo.append((self, timer, self.store.get(timer)))
        self._changed.add(timer)
