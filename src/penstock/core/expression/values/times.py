"""Dates and instants as Spark has them, in UTC, between the years 1 and 9999."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from penstock.core.instants import EPOCH, FIRST_DAY, FIRST_MICROS, LAST_DAY, LAST_MICROS, micros

__all__ = [
    "TRUNCATIONS",
    "date_of",
    "date_text",
    "days_of",
    "from_days",
    "from_micros",
    "instant_of",
    "instant_text",
    "micros",
    "text_to_date",
    "utc",
]

_EPOCH_ORDINAL = 719_163
_TRIMMED = "".join(map(chr, [*range(0x21), 0x7F]))
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)


def utc(instant: datetime) -> datetime:
    """Return the same instant, its fields those of UTC."""
    return instant if instant.tzinfo is UTC else instant.astimezone(UTC)


def from_micros(count: int) -> datetime | None:
    """Return the instant so many microseconds after 1970; None outside the years 1 to 9999."""
    return EPOCH + timedelta(microseconds=count) if FIRST_MICROS <= count <= LAST_MICROS else None


def date_of(instant: datetime) -> date:
    """Return the day of an instant."""
    return utc(instant).date()


def instant_of(day: date) -> datetime:
    """Return the first instant of a day."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def days_of(day: date) -> int:
    """Return the days since 1970."""
    return day.toordinal() - _EPOCH_ORDINAL


def from_days(days: int) -> date | None:
    """Return the day so many days after the first of 1970."""
    return date.fromordinal(days + _EPOCH_ORDINAL) if FIRST_DAY <= days <= LAST_DAY else None


def date_text(day: date) -> str:
    """Return the day as ``2026-01-31``."""
    return f"{day.year:04}-{day.month:02}-{day.day:02}"


def instant_text(instant: datetime) -> str:
    """Return the instant as ``2026-01-31 12:30:00.5``, without trailing zeros."""
    at = utc(instant)
    fraction = f".{at.microsecond:06}".rstrip("0") if at.microsecond else ""
    return f"{date_text(at)} {at.hour:02}:{at.minute:02}:{at.second:02}{fraction}"


def text_to_date(text: str) -> date | None:
    """Return the day that a text begins with; a missing month or day is the first."""
    match = _DATE.fullmatch(text.strip(_TRIMMED))
    if match is None or match[1] == "-":
        return None
    try:
        return date(int(match[2]), int(match[3] or 1), int(match[4] or 1))
    except ValueError:
        return None


def _to_day(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)


def _to_week(instant: datetime) -> datetime:
    return _to_day(instant) - timedelta(days=instant.weekday())


def _to_quarter(instant: datetime) -> datetime:
    return _to_day(instant).replace(month=(instant.month - 1) // 3 * 3 + 1, day=1)


TRUNCATIONS: dict[str, Callable[[datetime], datetime]] = {
    "microsecond": lambda at: at,
    "millisecond": lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000),
    "second": lambda at: at.replace(microsecond=0),
    "minute": lambda at: at.replace(second=0, microsecond=0),
    "hour": lambda at: at.replace(minute=0, second=0, microsecond=0),
    "day": _to_day,
    "week": _to_week,
    "month": lambda at: _to_day(at).replace(day=1),
    "quarter": _to_quarter,
    "year": lambda at: _to_day(at).replace(month=1, day=1),
}
"""What ``date_trunc`` does to an instant in UTC, by unit."""
