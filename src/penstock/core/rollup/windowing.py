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
    """Windows of one size, side by side: ``fixed("1m")``."""
    return FixedWindows(microseconds(size), microseconds(offset))


def sliding(size: str, *, every: str) -> SlidingWindows:
    """Windows of one size, a new one beginning every so often; a record is in several."""
    return SlidingWindows(microseconds(size), microseconds(every))


def sessions(*, gap: str) -> SessionWindows:
    """Windows that last while records of a key come less than a gap apart."""
    return SessionWindows(microseconds(gap))


def counted(size: int) -> CountWindows:
    """Windows of so many records of a key each, in order of arrival."""
    return CountWindows(size)


def everything() -> GlobalWindow:
    """One window for all time; give it a trigger, for it never ends by itself."""
    return GlobalWindow()


def on_watermark(*, early: Trigger | None = None, late: Trigger | None = None) -> AfterWatermark:
    """Fire when the watermark passes the window's end; before and after as told, repeatedly."""
    return AfterWatermark(early, late)


def after_count(count: int) -> AfterCount:
    """Fire once, when so many records have come."""
    return AfterCount(count)


def after_delay(span: str) -> AfterDelay:
    """Fire once, when the clock is this long past the first record of the pane."""
    return AfterDelay(microseconds(span))


def every(span: str) -> Repeat:
    """Fire again and again, each time this long after the pane's first record."""
    return Repeat(after_delay(span))


def every_record(count: int = 1) -> Repeat:
    """Fire for every record, or every so many."""
    return Repeat(AfterCount(count))


def repeat(trigger: Trigger) -> Repeat:
    """Fire whenever the trigger does, for ever."""
    return Repeat(trigger)


def any_of(*triggers: Trigger) -> AnyOf:
    """Fire once, with the first of these."""
    return AnyOf(triggers)


def all_of(*triggers: Trigger) -> AllOf:
    """Fire once, when all of these would."""
    return AllOf(triggers)


def in_order(*triggers: Trigger) -> InOrder:
    """Fire as the first of these until it has finished, then as the next."""
    return InOrder(triggers)


def until(trigger: Trigger, end: Trigger) -> Until:
    """Fire as the trigger does until the other fires, which ends it."""
    return Until((trigger, end))


def never() -> Never:
    """Fire only when the window expires."""
    return Never()
