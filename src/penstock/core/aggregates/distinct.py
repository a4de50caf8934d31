"""How many different values there are, exactly."""

from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import Aggregate, Form, whole_number

__all__ = ["Distinct", "distinct"]


@Form(gives=whole_number, spark="bigint(size(collect_set({value})))")
@dataclass(frozen=True, slots=True)
class Distinct:
    """How many different values there are, exactly; it keeps each of them."""

    def zero(self) -> dict[Any, bool]:
        """Return an empty accumulator: the values seen."""
        return {}

    def add(self, held: dict[Any, bool], value: Any) -> dict[Any, bool]:
        """Keep a value."""
        if value is not None:
            held[value] = True
        return held

    def merge(self, held: dict[Any, bool], other: dict[Any, bool]) -> dict[Any, bool]:
        """Keep the values of both."""
        return held | other

    def result(self, held: dict[Any, bool]) -> int:
        """Return how many there are."""
        return len(held)


def distinct(of: str) -> Aggregate:
    """Count the different values of an expression, exactly; null values are left out.

    It keeps every different value of a window in its state. Where there may be millions, use
    ``approximate_distinct``.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(levels=distinct("celsius"))
    """
    return Aggregate(Distinct(), of)
