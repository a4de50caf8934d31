"""What a batch has found in tables, kept beside the checkpoint until the next batch is computed.

A batch that is repeated after a crash finds the same rows, whatever became of the tables. That is
why its output may be written by many tasks.
"""

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.sink.begun import fingerprint

__all__ = ["SPOOL_BYTES", "Found", "Spool"]

SPOOL_BYTES = 64 << 20
"""Not more than so much is kept of a batch; with more it is written by one task."""

_DIRECTORY = "lookups"


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

    def put(self, batch: int, found: Found) -> str | None:
        """Keep what a batch has found, and forget earlier ones; return a fingerprint of it.

        None: it is too much, and was not kept.
        """
        if sum(each.nbytes for each in found.values()) > SPOOL_BYTES:
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


def _bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())
