"""The largest values."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import Aggregate, Form, is_number, list_of

__all__ = ["Top", "top"]


def _problems(given: "Top") -> Iterator[tuple[str, str]]:
    if not is_number(given.n, int) or given.n < 1:
        yield f"n is {given.n!r}", 'how many: top("celsius", 3), for example'


@Form(gives=list_of, problems=_problems, examples=({"n": 1}, {"n": 3}))
@dataclass(frozen=True, slots=True)
class Top:
    """The n largest values, largest first."""

    n: int

    def zero(self) -> list[Any]:
        """Return an empty accumulator."""
        return []

    def add(self, held: list[Any], value: Any) -> list[Any]:
        """Keep the n largest."""
        return held if value is None else self.merge(held, [value])

    def merge(self, held: list[Any], other: list[Any]) -> list[Any]:
        """Keep the n largest of both."""
        return heapq.nlargest(self.n, held + other)

    def result(self, held: list[Any]) -> list[Any]:
        """Return them."""
        return list(held)


def top(of: str, n: int) -> Aggregate:
    """Find the n largest values, largest first; null values are left out.

    The result is a list, with fewer than n values if there are not that many.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(hottest=top("celsius", 3))
    """
    return Aggregate(Top(n), of)
