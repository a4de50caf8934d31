"""Rows on which the gate without Python may not be of the codec's opinion: few, or none.

A sweep after real-time mode must ask that gate, and a job of Spark's beside a query that answers in
a millisecond is felt by it for seconds. So the codec looks first, in this process. What it takes
and what has none of the marks below is a record for both gates (see ``nativegate``).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.backbone.connection import Connection
from penstock.backbone.logrange import Offset
from penstock.backbone.logreader import LogReader
from penstock.backbone.logrecord import RawRecord
from penstock.core.graph import OnLog
from penstock.pipelines.codecgate import CodecGate
from penstock.pipelines.columns import bounds
from penstock.pipelines.gate import codec_gate
from penstock.pipelines.reading import OffsetRange

__all__ = ["marked", "suspicious_range"]

_LONG = 1000
"""Bytes; a number that Spark's parser finds too long is longer."""
_DEEP = 100
"""Brackets and braces that open; what Spark's parser finds too deep has more."""
_FAR = rb'[+-](1[89]|2[0-3]):?[0-5][0-9]"'
"""An offset of an instant that Spark does not know."""
_OPENING = np.frombuffer(b"[{", np.uint8)


def suspicious_range(
    connection: Connection, data: OnLog, over: OffsetRange
) -> dict[int, tuple[int, int]]:
    """Return the part of a range outside which every row is a record, whoever judges."""
    if data.record.schema.holds("decimal"):
        return dict(over)
    gate = codec_gate(data)
    first, last = ({number: span[at] for number, span in over.items()} for at in (0, 1))
    batches = LogReader(connection).batches(
        data.topic.name, start=Offset(first), end=Offset(last), partitions=sorted(over)
    )
    found: dict[int, tuple[int, int]] = {}
    for number, offset in (place for batch in batches for place in _suspects(gate, batch)):
        low, _ = found.get(number, (offset, offset))
        found[number] = (low, offset + 1)
    return found


def _suspects(gate: CodecGate, batch: Sequence[RawRecord]) -> Iterator[tuple[int, int]]:
    keys = pa.array([raw.key() for raw in batch], pa.binary())
    values = pa.array([raw.value() for raw in batch], pa.binary())
    (judged,) = gate([pa.RecordBatch.from_arrays([keys, values], ["key", "value"])])
    refused = judged.column(judged.num_columns - 1)
    doubted = pc.or_(pc.fill_null(refused, False), marked(values))  # noqa: FBT003
    for raw, doubt in zip(batch, doubted.to_pylist(), strict=True):
        if doubt:
            yield raw.partition() or 0, raw.offset() or 0


def marked(values: pa.Array) -> pa.Array:
    """Return for each value whether it has a mark by which the gates may differ."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        # Somewhere are bytes that are no UTF-8.
        return pa.repeat(pa.scalar(value=True), len(values))
    given = pc.fill_null(values, b"")
    far = pc.match_substring_regex(given, _FAR)
    long = pc.greater(pc.binary_length(given), _LONG)
    return pc.or_(pc.or_(far, long), pa.array(_depths(given) > _DEEP))


def _depths(values: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return how many brackets and braces open in each value."""
    ends = bounds(values)
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[: ends[-1]]
    opened = np.concatenate(([0], np.cumsum(np.isin(data, _OPENING))))
    counts: np.ndarray[tuple[int], np.dtype[np.int64]] = opened[ends[1:]] - opened[ends[:-1]]
    return counts
