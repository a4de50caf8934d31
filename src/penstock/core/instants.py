"""Instants as whole numbers since 1970, and the range of those that a record can hold.

The years 1 to 9999 of UTC are what Python, Spark and RFC 3339 have in common.
"""

from datetime import UTC, datetime, timedelta

__all__ = [
    "EPOCH",
    "FIRST_DAY",
    "FIRST_MICROS",
    "FIRST_MILLIS",
    "LAST_DAY",
    "LAST_MICROS",
    "LAST_MILLIS",
    "MICROSECOND",
    "instant",
    "micros",
]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """Return the microseconds from 1970 to an instant."""
    return (at - EPOCH) // MICROSECOND


def instant(at: int) -> datetime:
    """Return the instant so many microseconds after 1970; OverflowError outside the range."""
    return EPOCH + timedelta(microseconds=at)


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
FIRST_MICROS, LAST_MICROS = micros(_FIRST), micros(_LAST)
FIRST_MILLIS, LAST_MILLIS = FIRST_MICROS // 1000, LAST_MICROS // 1000
FIRST_DAY, LAST_DAY = (_FIRST - EPOCH).days, (_LAST - EPOCH).days
"""The first and the last that there are, counted from 1970."""
