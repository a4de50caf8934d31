"""Options of connectors as people write them; what is wrong is the author's to mend."""

from datetime import timedelta
from types import UnionType
from typing import Any

from penstock.core.place import caller
from penstock.core.units import UnitError, duration, size
from penstock.errors import DefinitionError, Problem

__all__ = ["byte_count", "invalid", "is_number", "time_span"]


def invalid(message: str, *, hint: str = "") -> DefinitionError:
    """Return the error for a wrong option, with the line of the user's source."""
    return DefinitionError((Problem("source.option", message, hint, caller()),))


def is_number(given: Any, kind: type[int] | UnionType = int) -> bool:
    """Return whether something is a number, a whole one unless told otherwise."""
    return isinstance(given, kind) and not isinstance(given, bool)


def byte_count(option: str, given: str | int) -> int:
    """Return a size of at least one byte."""
    try:
        count = size(given)
    except UnitError as error:
        raise invalid(f"{option}: {error}") from error
    if count < 1:
        raise invalid(f"{option} is {given!r}", hint="give it at least 1B")
    return count


def time_span(option: str, given: str | timedelta) -> timedelta:
    """Return a time span longer than nothing."""
    try:
        span = duration(given)
    except UnitError as error:
        raise invalid(f"{option}: {error}") from error
    if span <= timedelta():
        raise invalid(f"{option} is {given!r}", hint="give it more than 0s")
    return span
