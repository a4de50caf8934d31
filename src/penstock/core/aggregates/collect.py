"""Every value."""

from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import Aggregate, Form, list_of

__all__ = ["Collect", "collect"]


@Form(gives=list_of, spark="sort_array(collect_list({value}))")
@dataclass(frozen=True, slots=True)
class Collect:
    """Every value, smallest first."""

    def zero(self) -> list[Any]:
        """Return an empty accumulator."""
        return []

    def add(self, held: list[Any], value: Any) -> list[Any]:
        """Keep a value."""
        if value is not None:
            held.append(value)
        return held

    def merge(self, held: list[Any], other: list[Any]) -> list[Any]:
        """Keep both."""
        return held + other

    def result(self, held: list[Any]) -> list[Any]:
        """Return them in order, so that the order of arrival leaves no trace."""
        return sorted(held)


def collect(of: str) -> Aggregate:
    """Collect every value, smallest first; null values are left out.

    The result is a list, empty if there is no value. Only the window bounds it, and a list that is
    larger than the ``max_record`` of its stream cannot be written: use ``top``, or smaller windows.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(values=collect("celsius"))
    """
    return Aggregate(Collect(), of)
