"""What a batch has found in tables, kept beside the checkpoint until the next batch is computed.

A batch that is repeated after a crash finds the same rows, whatever became of the tables. That is
why its output may be written by many tasks.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.sink.begun import fingerprint

__all__ = ["SPOOL_BYTES", "Found", "Spool", "SpooledRows"]

SPOOL_BYTES = 64 << 20
"""Not more than so much is kept of a batch; with more it is written by one task."""

_DIRECTORY = "lookups"
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_BATCH = "streaming.sql.batchId"
"""Where Spark tells its tasks the number of the batch."""


class _Kept(msgspec.Struct, frozen=True):
    program: str
    tables: dict[int, bytes]


Found = Mapping[int, pa.Table]
"""The rows that were found, by the number of the place in the plan where they are looked up."""


class Spool:
    """The files of one checkpoint; ``program`` is a fingerprint of what asks."""

    def __init__(self, files: Files, checkpoint: str, program: str) -> None:
        self._files = files
        self._directory = f"{checkpoint}/{_DIRECTORY}"
        self._program = program
        self._tidied = False

    def get(self, batch: int) -> tuple[Found, str] | None:
        """Return what a batch has found, and a fingerprint of it; None where it is to look."""
        if str(batch) not in self._files.names(self._directory):
            return None
        data = self._files.data(f"{self._directory}/{batch}")
        kept = msgspec.msgpack.decode(data, type=_Kept)
        if kept.program != self._program:
            return None
        found = {
            number: pa.ipc.open_stream(each).read_all() for number, each in kept.tables.items()
        }
        return found, fingerprint(data.hex())

    def put(self, batch: int, found: Found, *, most: int | None = SPOOL_BYTES) -> str | None:
        """Keep what a batch has found, and forget earlier ones; return a fingerprint of it.

        None: it is more than so many bytes, and was not kept.
        """
        if most is not None and sum(each.nbytes for each in found.values()) > most:
            return None
        kept = _Kept(self._program, {number: _bytes(each) for number, each in found.items()})
        data = msgspec.msgpack.encode(kept)
        self._forget(batch)
        self._files.write(f"{self._directory}/{batch}", data)
        return fingerprint(data.hex())

    def _forget(self, before: int) -> None:
        if self._tidied:
            self._files.remove(f"{self._directory}/{before - 1}")
            return
        for name in self._files.names(self._directory):
            if not name.isdecimal() or int(name) < before:
                self._files.remove(f"{self._directory}/{name}")
        self._tidied = True


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """A function for ``mapInArrow``: the rows that the current batch has found at one place."""

    directory: str
    number: int

    @classmethod
    def of(cls, checkpoint: str, number: int) -> Self:
        """Return the rows of a place, kept beside a checkpoint on a disk."""
        return cls(f"{checkpoint.removeprefix('file:')}/{_DIRECTORY}", number)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows, whatever comes in."""
        deque(batches, maxlen=0)
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(_BATCH)
        data = Path(self.directory, str(batch)).read_bytes()
        kept = msgspec.msgpack.decode(data, type=_Kept)
        yield from pa.ipc.open_stream(kept.tables[self.number]).read_all().to_batches()


def _bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_COMPRESSED) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())
