"""Timers of a service: what wakes a key later, by event time or by the clock."""

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
    """A timer that is due: what ``on_timer`` gets first."""

    name: str
    key: str
    """The key it was set for, as text."""
    due_at: datetime
    time: TimerTime
    payload: Any = None
    now_at: datetime
    """The service's clock: the driver's in tests, the machine's otherwise."""
    event_time_at: datetime | None = None
    """How far event time has come; None: no record has had one yet."""


class TimerBook(Protocol):
    """Where the timers of one task are kept; the engine's business."""

    def put(
        self, here: CallScope, time: TimerTime, name: str, due_at: datetime, payload: Any
    ) -> None:
        """Set a timer of the key, or set it anew."""

    def drop(self, here: CallScope, time: TimerTime, name: str) -> None:
        """Forget a timer of the key; nothing happens where it is not set."""

    def due_at(self, time: TimerTime, key: bytes, name: str) -> datetime | None:
        """Return when a timer is due; None: it is not set."""

    def now_at(self, here: CallScope, time: TimerTime) -> datetime:
        """Return when the call happens in a time; ValueError where there is no event time."""


class Timers:
    """The timers of the key being handled: durable, as many as there are names.

    Ask for them by annotation in ``process`` and ``on_timer`` of a class: ``timers: Timers``. A
    timer belongs to its key and is known by its name and its time; setting it again moves it. What
    a call that fails did to timers is taken back.
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
        """Set the timer ``at`` an instant or ``after`` a span, in event time by default.

        The span counts from the record's own event time; in ``on_timer``, and of a record without
        one, from how far event time has come. ``time="processing"`` goes by the clock. The payload
        (what JSON can hold) comes back with the timer. In event time it is due once every stream
        has come so far (and further by the disorder it allows); one in the past is due at once.

        ValueError: no or two instants, one without a time zone, no event time to go by, or, inside
        ``on_timer``, an instant not after that of the timer which is being handled.
        """
        if not name or "\x00" in name or len(name) > _LONGEST_NAME:
            raise ValueError(f"{name!r} cannot name a timer: 1 to {_LONGEST_NAME} characters can")
        if time not in _TIMES:
            raise ValueError(f"timer {name!r}: {time!r} is not one of {', '.join(_TIMES)}")
        if (at is None) == (after is None):
            raise ValueError(f"say when timer {name!r} is due: at=... or after=...")
        if at is None:
            at = self._book.now_at(self._here, time) + duration(after or "0s")
        elif at.tzinfo is None:
            raise ValueError(f"timer {name!r}: {at.isoformat()} has no time zone")
        self._book.put(self._here, time, name, at, payload)

    def cancel(self, name: str, *, time: TimerTime = "event") -> None:
        """Forget the timer; nothing happens where it is not set."""
        self._book.drop(self._here, time, name)

    def due_at(self, name: str, *, time: TimerTime = "event") -> datetime | None:
        """Return when the timer is due; None: it is not set."""
        return self._book.due_at(time, self._here.key, name)
