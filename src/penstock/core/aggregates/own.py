"""Aggregates of users."""

from typing import Any

from penstock.core.aggregates.aggregate import Aggregate
from penstock.core.panes.combiner import Combiner

__all__ = ["combine"]


def combine(of: str, combiner: Combiner[Any, Any, Any], *, gives: Any) -> Aggregate:
    """Compute an aggregate of your own.

    ``combiner`` has four methods. ``zero()`` returns what an empty window holds, ``add(held,
    value)`` takes in a value, ``merge(held, other)`` joins two parts of a window, and
    ``result(held)`` returns the result, of the type ``gives``. What it holds must be plain data:
    numbers, texts, bools, None, and lists and dicts of them. The order in which values are added
    and merged must not matter.

    Numbers, texts and bools come as they are, instants as microseconds since 1970, dates as days
    since 1970, decimals as whole numbers of 10^-18.

    Examples:
        >>> class Longest:
        ...     def zero(self) -> int:
        ...         return 0
        ...     def add(self, held: int, value: str) -> int:
        ...         return max(held, len(value))
        ...     def merge(self, held: int, other: int) -> int:
        ...         return max(held, other)
        ...     def result(self, held: int) -> int:
        ...         return held
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(longest=combine("device", Longest(), gives=int))
    """
    return Aggregate(combiner, of, gives)
