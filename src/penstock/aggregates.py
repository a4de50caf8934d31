"""Aggregates: what a window computes. Give them, each with a name, to ``.aggregate(...)``."""

from penstock.core.aggregates.approximatedistinct import approximate_distinct
from penstock.core.aggregates.collect import collect
from penstock.core.aggregates.count import count
from penstock.core.aggregates.distinct import distinct
from penstock.core.aggregates.ends import first, last
from penstock.core.aggregates.extremes import maximum, minimum
from penstock.core.aggregates.own import combine
from penstock.core.aggregates.quantile import quantile
from penstock.core.aggregates.sums import mean, total
from penstock.core.aggregates.top import top
from penstock.core.aggregates.variance import variance

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
