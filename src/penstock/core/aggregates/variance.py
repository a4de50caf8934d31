"""The sample variance."""

from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import Aggregate, Form, Reduction, finite, real_number

__all__ = ["Variance", "variance"]

_LARGEST = 1e150
"""The largest float whose variance is left to Arrow, which adds up first and divides then."""


def _held(count: int, mean: float | None, variance: float | None) -> list[Any]:
    return [count, mean or 0.0, (variance or 0.0) * count]


@Form(
    takes="floats",
    gives=real_number,
    nullable=True,
    spark=finite("var_samp({value})"),
    arrow={
        "float": Reduction(
            ("count", "mean", "variance"), _held, safe=lambda largest, _count: largest < _LARGEST
        )
    },
)
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


def variance(of: str) -> Aggregate:
    """Compute the sample variance of a number; null values are left out.

    The result is a float, or null if there are fewer than two values.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(spread=variance("celsius"))
    """
    return Aggregate(Variance(), of)
