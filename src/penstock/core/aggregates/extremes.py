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
    """The smallest value."""
    return Aggregate(Min(), of)


def maximum(of: str) -> Aggregate:
    """The largest value."""
    return Aggregate(Max(), of)
