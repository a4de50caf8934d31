"""A clock that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta

from penstock.core.units import duration

__all__ = ["START_AT", "ManualClock"]

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""When the clock of a driver starts, unless the test says otherwise."""


class ManualClock:
    """Always gives the same instant, until :meth:`advance` moves it."""

    def __init__(self, start_at: datetime = START_AT) -> None:
        if start_at.tzinfo is None:
            raise ValueError(f"{start_at.isoformat()} has no time zone")
        self.now_at = start_at

    def __call__(self) -> datetime:
        """Return the instant."""
        return self.now_at

    def advance(self, span: str | timedelta) -> datetime:
        """Move on by a span and return the new instant. Time never goes back."""
        step = duration(span)
        if step < timedelta():
            raise ValueError(f"the clock cannot go back by {-step}")
        self.now_at += step
        return self.now_at
