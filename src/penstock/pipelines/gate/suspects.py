"""Find what in a range is not a record, or may not be one, in this process and without Spark.

A Spark job takes longer than reading a small batch again, and delays the reports. After real-time
mode a sweep must ask the gate without Python, and a job slows a query that answers in a millisecond
for seconds. So the codec looks first. What it accepts, and what has none of the marks below, is a
record for both gates (see ``native``).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import RawRecord
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import Offset
from penstock.core.graph.data import OnLog
from penstock.pipelines.gate.codec import CodecGate
from penstock.pipelines.gate.columns import bounds
from penstock.pipelines.gate.gate import codec_gate
from penstock.pipelines.gate.reading import OffsetRange

__all__ = ["marked", "refused_records", "suspicious_range"]

_LONG = 1000
"""Bytes; a number that Spark's parser finds too long is longer."""
_DEEP = 100
"""Brackets and braces that open; what Spark's parser finds too deep has more."""
_OPENING = np.frombuffer(b"[{", np.uint8)


def suspicious_range(
    connection: Connection, data: OnLog, over: OffsetRange
) -> dict[int, tuple[int, int]]:
    """Return the part of a range that may hold rows that one of the gates refuses."""
    if data.record.schema.holds("decimal"):
        return dict(over)
    found: dict[int, tuple[int, int]] = {}
    for raw in _chosen(connection, data, over, doubting=True):
        number, offset = raw.partition() or 0, raw.offset() or 0
        low, _ = found.get(number, (offset, offset))
        found[number] = (low, offset + 1)
    return found


def refused_records(connection: Connection, data: OnLog, over: OffsetRange) -> Iterator[RawRecord]:
    """Yield the records of a range that the codec refuses, in the order of each partition."""
    return _chosen(connection, data, over, doubting=False)


def _chosen(
    connection: Connection, data: OnLog, over: OffsetRange, *, doubting: bool
) -> Iterator[RawRecord]:
    gate = codec_gate(data)
    first, last = ({number: span[at] for number, span in over.items()} for at in (0, 1))
    batches = LogReader(connection).batches(
        data.topic.name, start=Offset(first), end=Offset(last), partitions=sorted(over)
    )
    return (raw for batch in batches for raw in _refused(gate, batch, doubting=doubting))


def _refused(gate: CodecGate, batch: Sequence[RawRecord], *, doubting: bool) -> Iterator[RawRecord]:
    keys = pa.array([raw.key() for raw in batch], pa.binary())
    values = pa.array([raw.value() for raw in batch], pa.binary())
    (judged,) = gate([pa.RecordBatch.from_arrays([keys, values], ["key", "value"])])
    refused = pc.fill_null(judged.column(judged.num_columns - 1), False)  # noqa: FBT003
    chosen = pc.or_(refused, marked(values)) if doubting else refused
    return (raw for raw, chose in zip(batch, chosen.to_pylist(), strict=True) if chose)


def marked(values: pa.Array) -> pa.Array:
    """Return for each value whether it has a mark by which the gates may differ."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        # Somewhere are bytes that are no UTF-8.
        return pa.repeat(pa.scalar(value=True), len(values))
    given = pc.fill_null(values, b"")
    long = pc.greater(pc.binary_length(given), _LONG)
    return pc.or_(long, pa.array(_depths(given) > _DEEP))


def _depths(values: pa.Array) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return how many brackets and braces open in each value."""
    ends = bounds(values)
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[: ends[-1]]
    opened = np.concatenate(([0], np.cumsum(np.isin(data, _OPENING))))
    counts: np.ndarray[tuple[int], np.dtype[np.int64]] = opened[ends[1:]] - opened[ends[:-1]]
    return counts
