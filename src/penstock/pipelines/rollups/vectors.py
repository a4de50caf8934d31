"""Accumulators of whole columns at once, in the very form the combiners themselves hold.

Where an aggregate has no such way, its combiner goes through the values one by one.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.aggregates.aggregate import Reduction
from penstock.core.expression.values.plainvalues import to_plain
from penstock.core.records.schema import Scalar
from penstock.core.rollup.resolve import Measure
from penstock.pipelines.rollups.frame import TIME

__all__ = ["Vector", "vector_of"]

Reductions: TypeAlias = list[tuple[str, str]]
"""Columns and what Arrow is to reduce each group of them to."""


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
    found = measure.form.arrow_for(measure.type)
    if found is None or not _is_safe(found, rows.column(column)):
        return _one_by_one(measure, column)
    return Vector([(column, function) for function in found.functions], found.make)


def _is_safe(reduction: Reduction, values: pa.ChunkedArray) -> bool:
    return reduction.safe is None or reduction.safe(_largest(values), len(values))


def _largest(values: pa.ChunkedArray) -> Any:
    bounds = pc.min_max(values).as_py()
    return max(abs(bounds["min"] or 0), abs(bounds["max"] or 0))


def _one_by_one(measure: Measure, column: str) -> Vector:
    combiner = measure.combiner
    plain = to_plain(measure.type) if measure.type == Scalar("decimal") else _same

    def accumulate(values: list[Any], times: list[int] | None = None) -> Any:
        held = combiner.zero()
        given = map(plain, values)
        for value in given if times is None else zip(times, given, strict=True):
            held = combiner.add(held, value)
        return held

    lists = [(column, "list"), (TIME, "list")] if measure.form.stamped else [(column, "list")]
    return Vector(lists, accumulate)


def _same(value: Any) -> Any:
    return value
