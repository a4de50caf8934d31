"""Aggregates: what a window computes. Give them, each with a name, to ``.aggregate(...)``."""

from penstock.core.rollup.aggregation import (
    approximate_distinct,
    collect,
    combine,
    count,
    distinct,
    first,
    last,
    maximum,
    mean,
    minimum,
    quantile,
    top,
    total,
    variance,
)

__all__ = [
    "approximate_distinct",
    "collect",
    "combine",
    "count",
    "distinct",
    "first",
    "last",
    "maximum",
    "mean",
    "minimum",
    "quantile",
    "top",
    "total",
    "variance",
]
