"""Regular expressions on Spark: Java's engine if that is safe, otherwise RE2 in Python.

Java's engine goes back and tries again. On a pattern with several ways through a text it may do so
for longer than anybody waits. Such patterns are sent to a Python function, which costs a little for
each row; real-time mode has no Python, so there they are refused before anything runs.
"""

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as sql
from pyspark.sql.pandas.functions import arrow_udf

from penstock.core.matching.backtracking import runs_straight
from penstock.core.matching.matching import searcher
from penstock.pipelines.spark.sqltext import Sql

__all__ = ["register_search", "searched"]

_SEARCH = "penstock_search"


def searched(text: Sql, pattern: str, *, written: Sql) -> Sql:
    """Return whether a text holds a match; ``written`` is the pattern as a literal of SQL."""
    function = "rlike" if runs_straight(pattern) else _SEARCH
    return f"{function}({text}, {written})"


def register_search(spark: SparkSession) -> SparkSession:
    """Make the function that :func:`searched` names known to a session; returns the session."""
    as_function: Any = arrow_udf  # its overloads know no keyword alone
    spark.udf.register(_SEARCH, as_function(_search, returnType=sql.BooleanType()))
    return spark


def _search(texts: pa.Array, patterns: pa.Array) -> pa.Array:
    if not len(texts):
        return pa.array([], pa.bool_())
    # The pattern is a constant, so every row has the same.
    find = searcher(patterns[0].as_py())
    found = [None if text is None else find(text) for text in texts.to_pylist()]
    return pa.array(found, pa.bool_())
