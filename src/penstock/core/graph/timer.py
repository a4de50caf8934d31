"""Timers of a service: calls at a later time, for one key, in event time or by the clock."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from penstock.core.graph.state import CallScope
from penstock.core.units import duration

__all__ = ["Timer", "TimerBook", "TimerTime", "Timers"]

TimerTime = Literal["event", "processing"]

_TIMES = ("event", "processing")
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer that is due: the first argument of ``on_timer``."""

    name: str
    key: str
    """The key it was set for, as text."""
    due_at: datetime
    """The instant for which it was set."""
    time: TimerTime
    payload: Any = None
    """What was given to :meth:`Timers.set`."""
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
    """The timers of a key. They are durable, and a key can have any number of names.

    ``process`` and ``on_timer`` of a class receive them through the annotation ``timers: Timers``.
    A timer is identified by its key, its name and its time (event time or the clock). Setting it
    again moves it. If a call fails, its changes of timers are undone.
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
        """Set or move a timer, ``at`` an instant or ``after`` a span.

        A timer in event time is due when every stream has reached its instant (plus the disorder
        that the stream allows). If its instant is in the past, it is due at once.

        Args:
            name: 1 to 200 characters
            at: when the timer is due, with a time zone
            after: the span until it is due. It counts from the event time of the record; in
                ``on_timer``, or if the record has none, from the event time of the task
            time: ``"event"``, or ``"processing"`` for the clock
            payload: any JSON value; ``on_timer`` receives it as ``timer.payload``

        Raises ValueError if neither or both of ``at`` and ``after`` are given, if ``at`` has no
        time zone, if there is no event time yet, or if a timer that is set in ``on_timer`` is not
        due later than the one being handled.
        """
        if not name or "\x00" in name or len(name) > _LONGEST_NAME:
            raise ValueError(
                f"the name of a timer has 1 to {_LONGEST_NAME} characters, not {name!r}"
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
