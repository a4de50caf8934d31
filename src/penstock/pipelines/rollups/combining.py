"""Combine records by key and window, before the shuffle.

A task reads one partition of the topic. It sends each bucket one value for many records. It tells
every bucket how far it has come, even a bucket for which it has no records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.expression.values.plainvalues import to_plain
from penstock.core.panes.arrivals import Arrivals, pack_arrivals
from penstock.core.panes.machine import Element, Partial
from penstock.core.panes.windows import (
    CountWindows,
    FixedWindows,
    SessionWindows,
    SlidingWindows,
    Window,
)
from penstock.core.records.schema import Scalar
from penstock.core.rollup.reader import GroupKey
from penstock.core.rollup.resolve import Rollup
from penstock.pipelines.rollups.frame import (
    AHEAD,
    CLOCK,
    OFFSET,
    PARTITION,
    SELECTED,
    TIME,
    group,
    value,
)
from penstock.pipelines.rollups.gcpause import collection_paused
from penstock.pipelines.rollups.vectors import vector_of

__all__ = ["BUCKET", "PAYLOAD", "SCHEMA", "Heartbeat", "PreShuffleCombiner"]

BUCKET, PAYLOAD = "bucket", "payload"
SCHEMA = f"{BUCKET} int, {PAYLOAD} binary"

_ROWS = 250_000
"""How many records are combined at a time."""
_SLICE = "_slice"


@dataclass(frozen=True, slots=True)
class PreShuffleCombiner:
    """A function for ``mapInArrow``."""

    rollup: Rollup
    buckets: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each bucket and some thousands of records."""
        waiting: list[pa.RecordBatch] = []
        count = 0
        for batch in batches:
            if batch.num_rows:
                waiting.append(batch)
                count += batch.num_rows
            if count >= _ROWS:
                yield from self._combined(pa.Table.from_batches(waiting))
                waiting, count = [], 0
        if waiting:
            yield from self._combined(pa.Table.from_batches(waiting))

    def _combined(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        partitions = pc.unique(rows.column(PARTITION)).to_pylist()
        for partition in partitions:
            own = rows
            if len(partitions) > 1:
                own = rows.filter(pc.equal(rows.column(PARTITION), partition))
            with collection_paused():
                packed = self._packed(_Source(self.rollup, str(partition), own))
            yield packed

    def _packed(self, source: "_Source") -> pa.RecordBatch:
        count = len(self.buckets)
        came = [source.arrivals() for _ in self.buckets]
        if isinstance(self.rollup.windowing.windows, SessionWindows | CountWindows):
            for key, element in source.elements():
                came[crc32(key) % count].elements.setdefault(key, []).append(element)
        else:
            for key, partial in source.partials():
                came[crc32(key) % count].partials.setdefault(key, []).append(partial)
        for row in source.ahead():
            came[crc32(row[0]) % count].ahead.append(row)
        # Most buckets get nothing of a small batch, and are told the same: how far the source is.
        nothing = pack_arrivals(source.arrivals())
        packed = [
            pack_arrivals(each) if each.elements or each.partials or each.ahead else nothing
            for each in came
        ]
        return _batch(self.buckets, packed)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A function for ``mapInArrow`` that tells every bucket the time when no record does."""

    buckets: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each bucket."""
        for batch in batches:
            if batch.num_rows:
                clock = batch.column(0)[0].as_py()
                beat = pack_arrivals(Arrivals(clock=clock))
                yield _batch(self.buckets, [beat] * len(self.buckets))
                return


class _Source:
    """Rows of one partition of the topic."""

    def __init__(self, rollup: Rollup, name: str, rows: pa.Table) -> None:
        self._name = name
        self._clock: int = rows.column(CLOCK)[0].as_py()
        self._position: int = rows.column(OFFSET)[0].as_py()
        self._rollup = rollup
        self._key = GroupKey(rollup.groups)
        self._groups = [group(index) for index in range(len(rollup.groups))]
        distrusted = rows.column(AHEAD)
        self._ahead = _selected(rows.filter(distrusted))
        believed = rows.filter(pc.invert(distrusted)) if pc.any(distrusted).as_py() else rows
        self._newest: int | None = pc.max(believed.column(TIME)).as_py()
        self._rows = _selected(believed)

    def arrivals(self) -> Arrivals:
        """Return what every bucket hears of the source; its records are yet to be added."""
        return Arrivals(
            clock=self._clock, source=self._name, position=self._position, newest=self._newest
        )

    def ahead(self) -> Iterator[tuple[bytes, int, tuple[str, int]]]:
        """Yield what is not believed, with key, event time and origin."""
        times, offsets = (self._ahead.column(each).to_pylist() for each in (TIME, OFFSET))
        for key, time, offset in zip(self._keys(self._ahead), times, offsets, strict=True):
            yield key, time, (self._name, offset)

    def elements(self) -> Iterator[tuple[bytes, Element]]:
        """Yield the records one by one, in their order."""
        rows = self._rows.sort_by(OFFSET)
        times, offsets = (rows.column(each).to_pylist() for each in (TIME, OFFSET))
        columns = [self._values(index, rows, times) for index in range(len(self._rollup.measures))]
        for key, time, offset, *values in zip(
            self._keys(rows), times, offsets, *columns, strict=True
        ):
            yield key, (time, values, (self._name, offset))

    def partials(self) -> Iterator[tuple[bytes, Partial]]:
        """Yield what the records of each key and window come to."""
        if not self._rows.num_rows:
            return
        rows = self._rows.append_column(_SLICE, self._slices())
        vectors = [
            vector_of(measure, value(index) if measure.expression else TIME, rows)
            for index, measure in enumerate(self._rollup.measures)
        ]
        wanted = [(TIME, "list"), (OFFSET, "list")]
        wanted += [each for vector in vectors for each in vector.reductions]
        reduced = rows.group_by([*self._groups, _SLICE], use_threads=False).aggregate(
            list(dict.fromkeys(wanted))
        )
        windows: dict[int, tuple[Window, ...]] = {}
        kind = self._rollup.windowing.windows
        for key, start, times, offsets, *held in zip(
            self._keys(reduced),
            reduced.column(_SLICE).to_pylist(),
            _arrays(reduced.column(f"{TIME}_list")),
            _arrays(reduced.column(f"{OFFSET}_list")),
            *(vector.accumulators(reduced) for vector in vectors),
            strict=True,
        ):
            if start not in windows:
                windows[start] = kind.of(start)  # type: ignore[union-attr]
            for window in windows[start]:
                yield key, Partial(window, held, times, offsets)

    def _slices(self) -> pa.Array:
        """Return the start of the longest span around each event time that no window cuts."""
        times = self._rows.column(TIME).to_numpy()
        match self._rollup.windowing.windows:
            case FixedWindows(size, offset):
                return pa.array(times - np.mod(times - offset, size))
            case SlidingWindows(size, period, offset):
                return pa.array(times - np.mod(times - offset, gcd(size, period)))
        return pa.array(np.zeros_like(times))

    def _values(self, index: int, rows: pa.Table, times: list[int]) -> list[Any]:
        measure = self._rollup.measures[index]
        if measure.expression is None:
            return [True] * len(times)
        values: list[Any] = rows.column(value(index)).to_pylist()
        if measure.type == Scalar("decimal"):
            values = list(map(to_plain(measure.type), values))
        return list(zip(times, values, strict=True)) if measure.form.stamped else values

    def _keys(self, rows: pa.Table) -> Iterator[bytes]:
        if not self._groups:
            alone = self._key.pack([])
            return iter([alone] * rows.num_rows)
        columns = [rows.column(each).to_pylist() for each in self._groups]
        return (self._key.pack(list(each)) for each in zip(*columns, strict=True))


def _selected(rows: pa.Table) -> pa.Table:
    """Return the records that were selected: the others only move the watermark."""
    return rows.filter(rows.column(SELECTED)) if SELECTED in rows.column_names else rows


def _arrays(lists: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the whole numbers of each list, as memory."""
    for chunk in lists.chunks:
        values, bounds = chunk.values.to_numpy(), chunk.offsets.to_numpy()
        for start, stop in pairwise(bounds):
            yield values[start:stop]


def _batch(buckets: Iterable[int], payloads: list[bytes]) -> pa.RecordBatch:
    columns = [pa.array(buckets, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=[BUCKET, PAYLOAD])
