"""Read the beginning and end of a range, and durations, as users write them."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from penstock.backbone.topics.range import EARLIEST, LATEST, End, Instant, Last, Offset, Start
from penstock.core.units import UnitError, duration

__all__ = ["END_HELP", "START_HELP", "read_end", "read_span", "read_start"]

START_HELP = "earliest, latest, an offset, -N (the last N), an instant, or a time ago such as 5m"
END_HELP = "latest, an offset, an instant (RFC 3339), or a time ago such as 5m"

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


def read_start(text: str, *, clock: Clock = _now) -> Start:
    """Return where reading starts; ArgumentTypeError says how to write it."""
    if text == "earliest":
        return EARLIEST
    if text.startswith("-") and text[1:].isdecimal():
        return Last(int(text[1:]))
    return read_end(text, clock=clock, known=START_HELP)


def read_end(text: str, *, clock: Clock = _now, known: str = END_HELP) -> End:
    """Return where reading ends; ArgumentTypeError says how to write it."""
    if text == "latest":
        return LATEST
    if text.isdecimal():
        return Offset(int(text))
    try:
        return Instant(clock() - duration(text))
    except (UnitError, OverflowError):
        pass  # it may be an instant
    try:
        at = datetime.fromisoformat(text)
        # Without a zone it is the time on the wall of whoever types it.
        return Instant(at if at.tzinfo else at.astimezone())
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"{text!r} is none of: {known}") from None


def read_span(text: str) -> timedelta:
    """Return a length of time; ArgumentTypeError says how to write it."""
    try:
        return duration(text)
    except UnitError as error:
        raise ArgumentTypeError(str(error)) from None
