"""Accumulators of whole columns at once, in the very form the combiners themselves hold.

Where an aggregate has no such way, its combiner goes through the values one by one.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.panes.aggregates import Count, Max, Mean, Min, Sum, Variance
from penstock.core.records.schema import Scalar
from penstock.core.rollup.plainvalues import to_plain
from penstock.core.rollup.resolve import Measure
from penstock.pipelines.rollups.frame import TIME

__all__ = ["Vector", "vector_of"]

Reductions: TypeAlias = list[tuple[str, str]]
"""Columns and what Arrow is to reduce each group of them to."""

_NUMBERS = {"bool", "int", "float", "instant", "date"}
_OURS = (Count, Max, Mean, Min, Sum, Variance)
"""Somebody's own may do otherwise than the one of these that it is made from."""
_LARGEST = 2**62
"""The largest sum of absolute values left to Arrow, which does not say when it overflows."""
_LARGEST_ROOT = 1e150
"""The largest float whose variance is left to Arrow, which adds up first and divides then."""


class Vector:
    """One aggregate over a column: what Arrow reduces it to, and accumulators made of that."""

    def __init__(self, reductions: Reductions, make: Callable[..., Any]) -> None:
        self.reductions = reductions
        self._make = make

    def accumulators(self, reduced: pa.Table) -> Iterator[Any]:
        """Yield the accumulator of each group."""
        names = (f"{column}_{reduction}" for column, reduction in self.reductions)
        return map(self._make, *(reduced.column(each).to_pylist() for each in names))


def vector_of(measure: Measure, column: str, rows: pa.Table) -> Vector:
    """Return how an aggregate goes over a column of these rows."""
    combiner = measure.combiner
    match combiner if type(combiner) in _OURS else None:
        case Count():
            return Vector([(column, "count")], lambda count: count)
        case Mean() | Sum() if _adds_up(measure, rows.column(column)):
            return Vector(
                [(column, "sum"), (column, "count")], lambda *found: [found[0] or 0, found[1]]
            )
        case Variance() if _largest(rows.column(column)) < _LARGEST_ROOT:
            return Vector([(column, each) for each in ("count", "mean", "variance")], _variance)
        case Max() if _is_number(measure):
            return Vector([(column, "max")], lambda most: most)
        case Min() if _is_number(measure):
            return Vector([(column, "min")], lambda least: least)
    return _one_by_one(measure, column)


def _variance(count: int, mean: float | None, variance: float | None) -> list[Any]:
    return [count, mean or 0.0, (variance or 0.0) * count]


def _adds_up(measure: Measure, values: pa.ChunkedArray) -> bool:
    """Whether Arrow's sum cannot overflow, or is a float that may."""
    if measure.type == Scalar("float"):
        return True
    if measure.type != Scalar("int"):
        return False
    return bool(_largest(values) * len(values) < _LARGEST)


def _largest(values: pa.ChunkedArray) -> Any:
    bounds = pc.min_max(values).as_py()
    return max(abs(bounds["min"] or 0), abs(bounds["max"] or 0))


def _is_number(measure: Measure) -> bool:
    return isinstance(measure.type, Scalar) and measure.type.name in _NUMBERS


def _one_by_one(measure: Measure, column: str) -> Vector:
    combiner = measure.combiner
    plain = to_plain(measure.type) if measure.type == Scalar("decimal") else _same

    def accumulate(values: list[Any], times: list[int] | None = None) -> Any:
        held = combiner.zero()
        given = map(plain, values)
        for value in given if times is None else zip(times, given, strict=True):
            held = combiner.add(held, value)
        return held

    lists = [(column, "list"), (TIME, "list")] if measure.stamped else [(column, "list")]
    return Vector(lists, accumulate)


def _same(value: Any) -> Any:
    return value
