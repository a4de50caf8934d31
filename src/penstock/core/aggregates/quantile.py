"""A value with a share of all values below it, about, in bounded space."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import Aggregate, Form, is_number, real_number

__all__ = ["Quantile", "quantile"]

_ALMOST_ZERO = 1e-9
_LARGEST = sys.float_info.max
"""An infinite value counts as the largest float."""


def _problems(given: "Quantile") -> Iterator[tuple[str, str]]:
    for option, value in (("share", given.share), ("error", given.error)):
        outside = not is_number(value) or not 0 <= value <= 1
        if outside or (option == "error" and value in {0, 1}):
            yield f"{option} is {value!r}", "between 0 and 1: 0.99, for example"


@Form(
    takes="floats",
    gives=real_number,
    nullable=True,
    problems=_problems,
    examples=({"share": 0.5}, {"share": 0.99, "error": 0.05}),
)
@dataclass(frozen=True, slots=True)
class Quantile:
    """A value with this share of all values below it, within ``error`` of it, relatively.

    A DDSketch: values are counted in buckets whose bounds grow by a constant factor. NaN is left
    out; values nearer to zero than 1e-9 count as zero.
    """

    share: float
    error: float = 0.01

    def zero(self) -> list[dict[int, int]]:
        """Return an empty accumulator: buckets below zero, at zero and above it."""
        return [{}, {}, {}]

    def add(self, held: list[dict[int, int]], value: Any) -> list[dict[int, int]]:
        """Count a value."""
        found = self._bucket(value)
        if found is not None:
            side, bucket = held[found[0]], found[1]
            side[bucket] = side.get(bucket, 0) + 1
        return held

    def subtract(self, held: list[dict[int, int]], value: Any) -> list[dict[int, int]]:
        """Count a value no more that was added before."""
        found = self._bucket(value)
        if found is not None:
            side, bucket = held[found[0]], found[1]
            side[bucket] = side.get(bucket, 0) - 1
            if side[bucket] <= 0:
                del side[bucket]
        return held

    def merge(
        self, held: list[dict[int, int]], other: list[dict[int, int]]
    ) -> list[dict[int, int]]:
        """Add up both."""
        merged = [dict(side) for side in held]
        for side, more in zip(merged, other, strict=True):
            for bucket, count in more.items():
                side[bucket] = side.get(bucket, 0) + count
        return merged

    def result(self, held: list[dict[int, int]]) -> float | None:
        """Return the quantile, or null over no value."""
        total = sum(sum(side.values()) for side in held)
        if not total:
            return None
        rank = self.share * (total - 1)
        seen = 0
        for value, count in self._ascending(held):
            seen += count
            if seen > rank:
                return value
        return value

    def _bucket(self, value: Any) -> tuple[int, int] | None:
        """Return the side of zero and the bucket of a value; None where it is no number."""
        if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
            return None
        size = abs(value)
        if size < _ALMOST_ZERO:
            return 1, 0
        side = 2 if value > 0 else 0
        return side, math.ceil(math.log(min(size, _LARGEST)) / self._step)

    @property
    def _step(self) -> float:
        return math.log((1 + self.error) / (1 - self.error))

    def _ascending(self, held: list[dict[int, int]]) -> list[tuple[float, int]]:
        negative, zero, positive = held
        middle = math.log(2 / (1 + math.exp(self._step)))

        def size(bucket: int) -> float:
            # By logarithms: the bound of the last bucket may be beyond all floats.
            return math.exp(min(bucket * self._step + middle, math.log(_LARGEST)))

        return [
            *((-size(b), n) for b, n in sorted(negative.items())[::-1]),
            *((0.0, n) for n in zero.values()),
            *((size(b), n) for b, n in sorted(positive.items())),
        ]


def quantile(of: str, share: float, *, error: float = 0.01) -> Aggregate:
    """Find the value below which a share of all values lies, within a relative error.

    ``share`` is between 0 and 1: 0.5 gives the median. ``error`` is relative to the value; a
    smaller one needs more state. The result is a float, or null if there is no value.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device")
        >>> per_minute = windowed.aggregate(hottest=quantile("celsius", 0.99))
    """
    return Aggregate(Quantile(share, error), of)
