"""The words for windows, triggers and accumulation, in spans of time as people write them.

Event time and clock are microseconds inside the pane machine; only this module converts.
"""

from datetime import timedelta
from typing import Self

from penstock.core.instants import MICROSECOND
from penstock.core.options import UnreadableSpan, span_of
from penstock.core.panes.times import END
from penstock.core.panes.triggers import (
    AfterCount,
    AfterDelay,
    AfterWatermark,
    AllOf,
    AnyOf,
    InOrder,
    Never,
    Repeat,
    Trigger,
    Until,
)
from penstock.core.panes.windows import (
    CountWindows,
    FixedWindows,
    GlobalWindow,
    SessionWindows,
    SlidingWindows,
)

__all__ = [
    "Unreadable",
    "after_count",
    "after_delay",
    "all_of",
    "any_of",
    "counted",
    "every",
    "every_record",
    "everything",
    "fixed",
    "in_order",
    "microseconds",
    "never",
    "on_watermark",
    "repeat",
    "sessions",
    "sliding",
    "until",
]


class Unreadable(int):
    """Stands for a number of microseconds that could not be read; `penstock check` says why."""

    problem: str

    def __new__(cls, problem: str) -> Self:
        """Keep what is wrong in place of the span."""
        made = super().__new__(cls, 1)
        made.problem = problem
        return made


def microseconds(span: str | timedelta) -> int:
    """Return a span in the pane machine's unit, ``"for ever"`` included."""
    if span == "for ever":
        return END
    found = span_of(span)
    return Unreadable(found.problem) if isinstance(found, UnreadableSpan) else found // MICROSECOND


def fixed(size: str, *, offset: str = "0s") -> FixedWindows:
    """Cut time into windows of one size, side by side.

    They are aligned to 1970-01-01T00:00Z, and moved by ``offset``. A window includes its start and
    excludes its end. A record is in one window.

    Examples:
        >>> windowed = readings.window(fixed("1d", offset="6h"), by="device")
        >>> result = windowed.aggregate(readings=count())
    """
    return FixedWindows(microseconds(size), microseconds(offset))


def sliding(size: str, *, every: str) -> SlidingWindows:
    """Cut time into overlapping windows of one size; a new one begins ``every`` so often.

    A record is in as many windows as overlap: with ten minutes every minute, in ten. ``penstock
    check`` refuses an ``every`` longer than the size, because records between the windows would be
    lost.

    Examples:
        >>> windowed = readings.window(sliding("10m", every="1m"), by="device")
        >>> result = windowed.aggregate(readings=count())
    """
    return SlidingWindows(microseconds(size), microseconds(every))


def sessions(*, gap: str) -> SessionWindows:
    """Group the records of a key that come less than a gap apart.

    A session ends when nothing has come for the gap, in event time. A late record may join two
    sessions into one.

    Examples:
        >>> windowed = readings.window(sessions(gap="5m"), by="device")
        >>> result = windowed.aggregate(readings=count())
    """
    return SessionWindows(microseconds(gap))


def counted(size: int) -> CountWindows:
    """Group so many records of a key, in the order in which they arrive.

    A full window gives one pane. There is no watermark and no lateness.

    Examples:
        >>> windowed = readings.window(counted(100), by="device")
        >>> result = windowed.aggregate(readings=count())
    """
    return CountWindows(size)


def everything() -> GlobalWindow:
    """Put all records of a key into one window that never ends.

    Give it a trigger that does not wait for the end.

    Examples:
        >>> windowed = readings.window(everything(), by="device").trigger(every_record(100))
        >>> result = windowed.aggregate(readings=count())
    """
    return GlobalWindow()


def on_watermark(*, early: Trigger | None = None, late: Trigger | None = None) -> AfterWatermark:
    """Fire when the watermark passes the end of the window.

    ``early`` fires before that, again and again, and ``late`` after it. Without ``late`` the window
    is closed at its end: records that come later go to the late ledger.

    Examples:
        >>> trigger = on_watermark(early=every("5s"), late=every_record())
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return AfterWatermark(early, late)


def after_count(count: int) -> AfterCount:
    """Fire once, when so many records are in the pane; then the window is closed.

    Examples:
        >>> trigger = after_count(100)
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return AfterCount(count)


def after_delay(span: str) -> AfterDelay:
    """Fire once, when the clock is this long past the first record of the pane.

    Then the window is closed. ``every`` does the same again and again.

    Examples:
        >>> trigger = after_delay("5s")
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return AfterDelay(microseconds(span))


def every(span: str) -> Repeat:
    """Fire again and again, each time this long after the first record of the pane, by the clock.

    Examples:
        >>> trigger = every("5s")
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return Repeat(after_delay(span))


def every_record(count: int = 1) -> Repeat:
    """Fire for every record, or for every so many.

    Records that arrive together count as one moment, and give one pane.

    Examples:
        >>> trigger = every_record(10)
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return Repeat(AfterCount(count))


def repeat(trigger: Trigger) -> Repeat:
    """Fire whenever the trigger does, for ever; the window is never closed before it expires.

    Examples:
        >>> trigger = repeat(after_count(10))
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return Repeat(trigger)


def any_of(*triggers: Trigger) -> AnyOf:
    """Fire once, with the first of these triggers; then the window is closed.

    Examples:
        >>> trigger = any_of(after_count(100), after_delay("5s"))
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return AnyOf(triggers)


def all_of(*triggers: Trigger) -> AllOf:
    """Fire once, when all of these triggers would have fired; then the window is closed.

    Examples:
        >>> trigger = all_of(after_count(100), after_delay("5s"))
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return AllOf(triggers)


def in_order(*triggers: Trigger) -> InOrder:
    """Fire as the first of these triggers until it has finished, then as the next.

    Examples:
        >>> trigger = in_order(after_count(1), every("10s"))
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return InOrder(triggers)


def until(trigger: Trigger, end: Trigger) -> Until:
    """Fire as the trigger does, until ``end`` fires, which closes the window.

    Examples:
        >>> trigger = until(every_record(), after_count(100))
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return Until((trigger, end))


def never() -> Never:
    """Never fire; the window gives one pane, when it expires.

    Examples:
        >>> trigger = never()
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m").trigger(trigger)
        >>> result = windowed.aggregate(readings=count())
    """
    return Never()
