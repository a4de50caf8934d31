"""Values as 64-bit numbers, by which rows are found. Equal values have equal ones, in any process.

Different values may share a number: whoever finds rows by it gets all that are wanted, and may get
a few more.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["HASHED", "Hashes", "hashes", "spans"]

Hashes = npt.NDArray[np.uint64]

HASHED = ("bigint", "binary", "boolean", "date", "decimal(38,18)", "string", "timestamp")
"""Spark's names of the types whose equal values always have one form."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that no bit of a value is lost."""


def hashes(columns: Sequence[pa.Array]) -> Hashes:
    """Return a number for each row: of one column, or of several together."""
    first, *more = map(_hashed, columns)
    for each in more:
        first = first * _FACTOR + each
    return first


def spans(ordered: Hashes, wanted: Hashes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return all pairs of places with equal numbers: in what is wanted, and in what is ordered."""
    begins = np.searchsorted(ordered, wanted, "left")
    counts = np.searchsorted(ordered, wanted, "right") - begins
    asked = np.repeat(np.arange(len(wanted)), counts)
    # Each span counts on from its own beginning.
    inside = np.arange(len(asked)) - np.repeat(np.cumsum(counts) - counts, counts)
    return asked, np.repeat(begins, counts) + inside


def _hashed(column: pa.Array) -> Hashes:
    kind: Any = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _of_objects(column)
    if pa.types.is_decimal(kind):
        return _of_objects(pc.cast(column, pa.string()))
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    numbers = pc.fill_null(pc.cast(column, pa.int64()), 0).to_numpy(zero_copy_only=False)
    return np.asarray(pd.util.hash_array(numbers), np.uint64)


def _of_objects(column: pa.Array) -> Hashes:
    objects = np.empty(len(column), object)
    objects[:] = column.to_pylist()
    return np.asarray(pd.util.hash_array(objects, categorize=False), np.uint64)
