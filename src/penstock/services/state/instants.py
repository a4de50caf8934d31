"""Instants as whole microseconds since the epoch: what timers are ordered and kept by."""

from datetime import UTC, datetime, timedelta

__all__ = ["EPOCH", "FIRST", "LAST", "instant", "micros"]

EPOCH = datetime.fromtimestamp(0, UTC)
_STEP = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """Return an instant as microseconds."""
    return (at - EPOCH) // _STEP


def instant(at: int) -> datetime:
    """Return microseconds as an instant."""
    return EPOCH + timedelta(microseconds=at)


FIRST = micros(datetime.min.replace(tzinfo=UTC))
"""The first instant there is."""
LAST = micros(datetime.max.replace(tzinfo=UTC))
"""The last instant there is."""
