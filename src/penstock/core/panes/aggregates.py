"""The aggregates with an exact answer, as combiners over plain data.

All but :class:`Count` over records leave nulls out, as SQL does; over no value at all a count is
0, a collection empty, anything else null.
"""

import heapq
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Collect",
    "Count",
    "Distinct",
    "First",
    "Last",
    "Max",
    "Mean",
    "Min",
    "Sum",
    "Top",
    "Variance",
]


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

    def subtract(self, held: int, other: int) -> int:
        """Take the other away."""
        return held - other

    def result(self, held: int) -> int:
        """Return the count."""
        return held


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum; null over no value."""

    def zero(self) -> list[Any]:
        """Return an empty accumulator: sum and count."""
        return [0, 0]

    def add(self, held: list[Any], value: Any) -> list[Any]:
        """Add a value."""
        if value is not None:
            held[0] += value
            held[1] += 1
        return held

    def merge(self, held: list[Any], other: list[Any]) -> list[Any]:
        """Add up both."""
        return [held[0] + other[0], held[1] + other[1]]

    def subtract(self, held: list[Any], other: list[Any]) -> list[Any]:
        """Take the other away."""
        return [held[0] - other[0], held[1] - other[1]]

    def result(self, held: list[Any]) -> Any:
        """Return the sum, or null."""
        return held[0] if held[1] else None


class Mean(Sum):
    """The arithmetic mean; null over no value."""

    __slots__ = ()

    def result(self, held: list[Any]) -> Any:
        """Return the mean, or null."""
        return held[0] / held[1] if held[1] else None


@dataclass(frozen=True, slots=True)
class Variance:
    """The sample variance, added up without cancellation; null over fewer than two values."""

    def zero(self) -> list[Any]:
        """Return an empty accumulator: count, mean, sum of squared distances."""
        return [0, 0.0, 0.0]

    def add(self, held: list[Any], value: Any) -> list[Any]:
        """Add a value."""
        if value is None:
            return held
        count, mean, squares = held
        distance = value - mean
        mean += distance / (count + 1)
        return [count + 1, mean, squares + distance * (value - mean)]

    def merge(self, held: list[Any], other: list[Any]) -> list[Any]:
        """Add up both."""
        if not held[0] or not other[0]:
            return held if held[0] else other
        count = held[0] + other[0]
        distance = other[1] - held[1]
        mean = held[1] + distance * (other[0] / count)
        # Not the square of the distance first: it may be too large where the whole is not.
        between = distance * (distance * (held[0] * (other[0] / count)))
        return [count, mean, held[2] + other[2] + between]

    def result(self, held: list[Any]) -> Any:
        """Return the variance, or null."""
        return held[2] / (held[0] - 1) if held[0] > 1 else None


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


class Max(Min):
    """The largest value."""

    __slots__ = ()

    def add(self, held: Any, value: Any) -> Any:
        """Keep the larger."""
        if held is None or value is None:
            return value if held is None else held
        return max(held, value)


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


class Last(First):
    """The value that happened last; ties go to the larger."""

    __slots__ = ()

    def add(self, held: Any, value: Any) -> Any:
        """Keep the later."""
        if value is None or value[1] is None:
            return held
        return list(value) if held is None else max(held, list(value))


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
