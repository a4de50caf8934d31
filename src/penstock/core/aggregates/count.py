"""How many values there are."""

from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import Aggregate, Form, Reduction, whole_number

__all__ = ["Count", "count"]


@Form(
    takes="presence",
    gives=whole_number,
    spark="count({value})",
    arrow={"int": Reduction(("count",), lambda count: count)},
)
@dataclass(frozen=True, slots=True)
class Count:
    """How many values are not null."""

    def zero(self) -> int:
        """Return an empty accumulator."""
        return 0

    def add(self, held: int, value: Any) -> int:
        """Count a value."""
        return held + (value is not None)

    def merge(self, held: int, other: int) -> int:
        """Add up both."""
        return held + other

    def result(self, held: int) -> int:
        """Return the count."""
        return held


def count(of: str | None = None) -> Aggregate:
    """Count the records of a window, or the values of an expression that are not null.

    The result is an int, 0 if nothing is counted. ``count("nullif(celsius > 60, false)")`` counts
    the records for which a condition is true.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(readings=count())
    """
    return Aggregate(Count(), of)
