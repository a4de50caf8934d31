"""The values that happened first and last."""

from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import Aggregate, Form, same

__all__ = ["First", "Last", "first", "last"]

_STAMPED = "case when {value} is not null then struct({time} as time, {value} as value) end"


@Form(gives=same, nullable=True, stamped=True, spark=f"min({_STAMPED}).value")
@dataclass(frozen=True, slots=True)
class First:
    """The value that happened first; values are ``(event time, value)``, ties go to the smaller."""

    def zero(self) -> Any:
        """Return an empty accumulator."""
        return None

    def add(self, held: Any, value: Any) -> Any:
        """Keep the earlier."""
        if value is None or value[1] is None:
            return held
        return list(value) if held is None else min(held, list(value))

    def merge(self, held: Any, other: Any) -> Any:
        """Keep the earlier."""
        return self.add(held, other)

    def result(self, held: Any) -> Any:
        """Return the value, or null."""
        return None if held is None else held[1]


@Form(gives=same, nullable=True, stamped=True, spark=f"max({_STAMPED}).value")
class Last(First):
    """The value that happened last; ties go to the larger."""

    __slots__ = ()

    def add(self, held: Any, value: Any) -> Any:
        """Keep the later."""
        if value is None or value[1] is None:
            return held
        return list(value) if held is None else max(held, list(value))


def first(of: str) -> Aggregate:
    """Find the value with the earliest event time; null values are left out.

    The result is of the type of the expression, or null if there is no value.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(opening=first("celsius"))
    """
    return Aggregate(First(), of)


def last(of: str) -> Aggregate:
    """Find the value with the latest event time; null values are left out.

    The result is of the type of the expression, or null if there is no value.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(closing=last("celsius"))
    """
    return Aggregate(Last(), of)
