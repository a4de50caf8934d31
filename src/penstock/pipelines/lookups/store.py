"""A table as its topic has made it so far: segments, of which a newer one replaces rows of others.

What is large is on disk and read through the memory of the system. Finding rows costs what is asked
for, times the number of segments; taking changes costs what changed, and now and then a merge.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.pipelines.lookups.hashes import hashes
from penstock.pipelines.lookups.segment import GONE, KEY, Segment, merged

__all__ = ["MAX_SEGMENTS", "SEGMENT_BYTES", "LookupStore"]

SEGMENT_BYTES = 256 << 20
"""Segments are merged up to this size: so much is moved in memory at a time."""
MAX_SEGMENTS = 16
"""With more of them, the two smallest neighbours become one, unless that is too large."""
_MEMORY_BYTES = 4 << 20
"""Smaller segments stay in memory."""


class LookupStore:
    """The rows of one table, in a directory that is this store's own."""

    def __init__(
        self,
        directory: Path,
        fields: pa.Schema,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        memory_bytes: int = _MEMORY_BYTES,
    ) -> None:
        self._directory = directory
        self._fields = fields
        self._segment_bytes = segment_bytes
        self._memory_bytes = memory_bytes
        self._segments: list[Segment] = []
        self._made = 0
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def segments(self) -> int:
        """The number of segments."""
        return len(self._segments)

    @property
    def bytes(self) -> int:
        """The size of all rows, replaced ones included."""
        return sum(each.bytes for each in self._segments)

    def put(self, rows: pa.RecordBatch) -> None:
        """Take rows in the order of the log: key, deletion mark, fields."""
        if not rows.num_rows:
            return
        self._segments.append(Segment.of(rows, file=self._file(rows.nbytes)))
        while len(self._segments) > MAX_SEGMENTS and self._merge():
            pass

    def find(self, columns: tuple[str, ...], asked: Sequence[pa.Array]) -> pa.Table:
        """Return the rows that may have one of the asked values in these columns, and maybe others.

        The columns are those of the fields. Null is never found.
        """
        wanted = np.unique(hashes(asked))
        newer: list[Segment] = []
        parts: list[pa.RecordBatch] = []
        for segment in reversed(self._segments):
            found = segment.find(columns, wanted)
            alive = ~found.column(GONE).to_numpy(zero_copy_only=False)
            if found.num_rows:
                hashed = hashes([found.column(KEY)])
                for each in newer:
                    alive &= ~each.has(found.column(KEY), hashed)
            parts.append(found.filter(pa.array(alive)).select(self._fields.names))
            newer.append(segment)
        return pa.Table.from_batches(parts, self._fields)

    def clear(self) -> None:
        """Forget all rows."""
        for each in self._segments:
            _remove(each)
        self._segments = []

    def _merge(self) -> bool:
        """Make one segment of the two neighbours that are smallest together, if it may be."""
        sizes = [each.bytes for each in self._segments]
        together = [one + other for one, other in pairwise(sizes)]
        at = int(np.argmin(together))
        if together[at] > self._segment_bytes:
            return False
        older, newer = self._segments[at : at + 2]
        one = merged(older, newer, oldest=at == 0, file=self._file(together[at]))
        self._segments[at : at + 2] = [one]
        _remove(older)
        _remove(newer)
        return True

    def _file(self, size: int) -> Path | None:
        """Return where a segment of this size is kept; None: in memory."""
        if size < self._memory_bytes:
            return None
        self._made += 1
        return self._directory / f"{self._made}.arrow"


def _remove(segment: Segment) -> None:
    if segment.file is not None:
        # What is still read through memory stays readable.
        segment.file.unlink(missing_ok=True)
