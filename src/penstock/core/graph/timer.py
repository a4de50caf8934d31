"""Timers of a service: calls at a later time, for one key, in event time or by the clock."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from penstock.core.graph.state import CallScope
from penstock.core.units import duration

__all__ = ["OWN_TIMERS", "Timer", "TimerBook", "TimerTime", "Timers"]

TimerTime = Literal["event", "processing"]

_TIMES = ("event", "processing")
_LONGEST_NAME = 200
OWN_TIMERS = "\x01"
"""What the names of timers begin with that are Penstock's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer that is due: the first argument of ``on_timer``.

    ``now_at`` and ``event_time_at`` say how far the clock and event time are; both may be past
    ``due_at``, for example after a restart.

    Examples:
        >>> @app.service(reads=readings, writes=alarms)
        ... class Remind:
        ...     def process(self, reading: Reading, timers: Timers) -> None:
        ...         timers.set("again", after="1h", payload=reading.celsius)
        ...     def on_timer(self, timer: Timer) -> Alarm:
        ...         return Alarm(timer.key, f"it was {timer.payload} °C at {timer.due_at}")
    """

    name: str
    key: str
    """The key it was set for, as text."""
    due_at: datetime
    """The instant for which it was set."""
    time: TimerTime
    payload: Any = None
    """What was given to ``Timers.set``."""
    now_at: datetime
    """The clock of the service: in tests that of the driver, otherwise that of the machine."""
    event_time_at: datetime | None = None
    """The event time of the task; None: no record has had one yet."""


class TimerBook(Protocol):
    """Where an engine keeps the timers of one task."""

    def put(
        self, here: CallScope, time: TimerTime, name: str, due_at: datetime, payload: Any
    ) -> None:
        """Set a timer of the key, or move it."""

    def drop(self, here: CallScope, time: TimerTime, name: str) -> None:
        """Cancel a timer of the key; no effect if it is not set."""

    def due_at(self, time: TimerTime, key: bytes, name: str) -> datetime | None:
        """Return when a timer is due; None if it is not set."""

    def now_at(self, here: CallScope, time: TimerTime) -> datetime:
        """Return the time of the call; ValueError if there is no event time."""


class Timers:
    """The timers of the key that is being handled: they call ``on_timer`` later.

    Ask for them by annotation in the methods of a class. A timer has a name; setting it again moves
    it. Timers are durable: they are committed with state and offsets, and move with their
    partition. If the call raises, what it did to timers is undone.

    Examples:
        >>> @app.service(reads=readings, writes=alarms)
        ... class Silence:
        ...     def process(self, reading: Reading, timers: Timers) -> None:
        ...         timers.set("silent", after="10m")
        ...     def on_timer(self, timer: Timer) -> Alarm:
        ...         return Alarm(timer.key, "silent for ten minutes")
        >>> from penstock.testing import Driver
        >>> driver = Driver(app)
        >>> driver.pipe(readings, Reading("boiler", datetime(2026, 1, 1, tzinfo=UTC), 71.5))
        >>> driver.advance_event_time("10m")
        >>> driver.read(alarms)
        [Alarm(device='boiler', text='silent for ten minutes')]
    """

    __slots__ = ("_book", "_here")

    def __init__(self, book: TimerBook, here: CallScope) -> None:
        self._book = book
        self._here = here

    def set(
        self,
        name: str,
        *,
        at: datetime | None = None,
        after: str | timedelta | None = None,
        time: TimerTime = "event",
        payload: Any = None,
    ) -> None:
        """Set the timer for an instant, or for a span from now.

        ``after`` counts from the record's own event time; in ``on_timer``, and for a record without
        event time, from how far event time has come. With ``time="processing"`` the clock decides
        instead. A timer that is already past is due at once. ``on_timer`` gets the payload, which
        must be plain JSON.

        It raises a ValueError if both or neither of ``at`` and ``after`` are given, for an instant
        without a time zone, if there is no event time to count from, and inside ``on_timer`` for an
        instant that is not after that of the timer which is being handled.
        """
        given: Any = name
        fits = isinstance(given, str) and 0 < len(name) <= _LONGEST_NAME
        if not fits or name[0] == OWN_TIMERS or "\x00" in name:
            raise ValueError(
                f"the name of a timer is a text of 1 to {_LONGEST_NAME} characters, without \\x00 "
                f"and not beginning with {OWN_TIMERS!r}; it is {name!r}"
            )
        if time not in _TIMES:
            raise ValueError(f"timer {name!r}: {time!r} is not one of {', '.join(_TIMES)}")
        if (at is None) == (after is None):
            raise ValueError(f"timer {name!r} needs either at=... or after=...")
        if at is None:
            at = self._book.now_at(self._here, time) + duration(after or "0s")
        elif at.tzinfo is None:
            raise ValueError(f"timer {name!r}: {at.isoformat()} has no time zone")
        self._book.put(self._here, time, name, at, payload)

    def cancel(self, name: str, *, time: TimerTime = "event") -> None:
        """Cancel the timer; no effect if it is not set."""
        self._book.drop(self._here, time, name)

    def due_at(self, name: str, *, time: TimerTime = "event") -> datetime | None:
        """Return when the timer is due; None if it is not set."""
        return self._book.due_at(time, self._here.key, name)
