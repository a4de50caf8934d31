"""Rows of a table that were read together, in a file or in memory, and what finds them.

A segment never changes. Its rows lie in the order of the hashes of their keys.
"""

from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.lookups.hashes import Hashes, hashes, spans

__all__ = ["GONE", "KEY", "Segment", "merged"]

KEY, GONE = "_penstock_key", "_penstock_gone"
"""The columns beside the fields: the key on the log, and whether it deletes its row."""

_Places = npt.NDArray[np.int64]


class Segment:
    """The last row of each key, as of the records that it was made of."""

    def __init__(self, rows: pa.RecordBatch, *, file: Path | None = None) -> None:
        self.rows = rows
        self.file = file
        self._hashes = hashes([rows.column(KEY)])
        self._indexes: dict[tuple[str, ...], tuple[Hashes, _Places]] = {}

    @classmethod
    def of(cls, rows: pa.RecordBatch, *, file: Path | None = None) -> Self:
        """Return a segment of rows in the order in which they were read; with a file, on disk.

        Of several rows of a key the last one counts.
        """
        last = {key: place for place, key in enumerate(rows.column(KEY).to_pylist())}
        places = np.fromiter(last.values(), np.int64, len(last))
        order = np.argsort(hashes([rows.column(KEY).take(places)]), kind="stable")
        rows = rows.take(places[order])
        return cls(rows if file is None else _on_disk(rows, file), file=file)

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.rows.num_rows)

    @property
    def bytes(self) -> int:
        """How much memory the rows take, or would take."""
        return int(self.rows.nbytes)

    def has(self, keys: pa.Array, hashed: Hashes) -> npt.NDArray[np.bool_]:
        """Return which of these keys have a row here."""
        asked, places = spans(self._hashes, hashed)
        # Different keys may have one hash.
        same = pc.equal(keys.take(asked), self.rows.column(KEY).take(places))
        found = np.zeros(len(keys), np.bool_)
        found[asked[same.to_numpy(zero_copy_only=False)]] = True
        return found

    def find(self, columns: tuple[str, ...], wanted: Hashes) -> pa.RecordBatch:
        """Return the rows whose values in these columns have one of these hashes."""
        ordered, places = self._index(columns)
        _, found = spans(ordered, wanted)
        return self.rows.take(np.sort(places[found]))

    def without(self, later: "Segment") -> pa.RecordBatch:
        """Return the rows that a later segment does not replace."""
        keys = self.rows.column(KEY)
        return self.rows.filter(pa.array(~later.has(keys, self._hashes)))

    def _index(self, columns: tuple[str, ...]) -> tuple[Hashes, _Places]:
        if columns not in self._indexes:
            found = hashes([self.rows.column(name) for name in columns])
            order = np.argsort(found, kind="stable")
            self._indexes[columns] = found[order], order
        return self._indexes[columns]


def merged(
    older: Segment, newer: Segment, *, oldest: bool = False, file: Path | None = None
) -> Segment:
    """Return one segment instead of two that follow each other.

    ``oldest``: nothing is before them, so that what is gone may be forgotten.
    """
    rows = pa.concat_batches([older.without(newer), newer.rows])
    if oldest:
        rows = rows.filter(pc.invert(rows.column(GONE)))
    return Segment.of(rows, file=file)


def _on_disk(rows: pa.RecordBatch, file: Path) -> pa.RecordBatch:
    """Write rows to a file, and return them as they lie there."""
    with pa.OSFile(str(file), "wb") as out, pa.ipc.new_file(out, rows.schema) as writer:
        writer.write_batch(rows)
    return pa.ipc.open_file(pa.memory_map(str(file))).get_batch(0)
