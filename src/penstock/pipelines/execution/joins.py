"""Joins of two streams: whether their state has a bound in time."""

import re
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["ENDLESS", "HINT", "joins_streams", "keeps_rows_for_ever"]

ENDLESS = "without a bound in time, and keeps their rows for ever"
HINT = "give both streams a disorder, and compare their times in the join's condition"

_OPERATOR = "symmetricHashJoin"
_CLEANUP = re.compile(r"state cleanup \[(.*?)\]")
"""How Spark's plan shows the predicate by which a join releases rows of either side."""
_NOT_EXTENDED = False


def joins_streams(progress: Any) -> bool:
    """Return whether a finished batch went through a join of two streams."""
    return any(each["operatorName"] == _OPERATOR for each in progress["stateOperators"])


def keeps_rows_for_ever(query: StreamingQuery) -> bool:
    """Return whether a join in the plan of the last batch keeps its rows for ever."""
    # PySpark only prints the plan.
    java: Any = query._jsq  # noqa: SLF001
    return any("= null" in each for each in _CLEANUP.findall(java.explainInternal(_NOT_EXTENDED)))
