"""Aggregates of users."""

from typing import Any

from penstock.core.aggregates.aggregate import Aggregate
from penstock.core.panes.combiner import Combiner

__all__ = ["combine"]


def combine(of: str, combiner: Combiner[Any, Any, Any], *, gives: Any) -> Aggregate:
    """Your own aggregate: zero, add, merge and result over plain data, and the type it gives.

    It is given numbers, texts and bools as they are, instants as microseconds and dates as days
    since 1970, decimals as whole numbers of 10^-18; what it holds must be plain data, too.
    """
    return Aggregate(combiner, of, gives)
