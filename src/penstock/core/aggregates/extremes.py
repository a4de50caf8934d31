"""The smallest and the largest value."""

from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import Aggregate, Form, Reduction, same

__all__ = ["Max", "Min", "maximum", "minimum"]

_NUMBERS = ("bool", "int", "float", "instant", "date")


def _itself(found: Any) -> Any:
    return found


@Form(
    gives=same,
    nullable=True,
    spark="min({value})",
    arrow=dict.fromkeys(_NUMBERS, Reduction(("min",), _itself)),
)
@dataclass(frozen=True, slots=True)
class Min:
    """The smallest value."""

    def zero(self) -> Any:
        """Return an empty accumulator."""
        return None

    def add(self, held: Any, value: Any) -> Any:
        """Keep the smaller."""
        if held is None or value is None:
            return value if held is None else held
        return min(held, value)

    def merge(self, held: Any, other: Any) -> Any:
        """Keep the smaller."""
        return self.add(held, other)

    def result(self, held: Any) -> Any:
        """Return the smallest, or null."""
        return held


@Form(
    gives=same,
    nullable=True,
    spark="max({value})",
    arrow=dict.fromkeys(_NUMBERS, Reduction(("max",), _itself)),
)
class Max(Min):
    """The largest value."""

    __slots__ = ()

    def add(self, held: Any, value: Any) -> Any:
        """Keep the larger."""
        if held is None or value is None:
            return value if held is None else held
        return max(held, value)


def minimum(of: str) -> Aggregate:
    """Find the smallest value of an expression; null values are left out.

    The result is of the type of the expression, or null if there is no value.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(coldest=minimum("celsius"))
    """
    return Aggregate(Min(), of)


def maximum(of: str) -> Aggregate:
    """Find the largest value of an expression; null values are left out.

    The result is of the type of the expression, or null if there is no value.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(hottest=maximum("celsius"))
    """
    return Aggregate(Max(), of)
