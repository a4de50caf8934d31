"""Records as files of a directory, exactly once, whatever their layout.

A file is complete as soon as its name is there: it is written under a hidden name, flushed to the
disk and renamed. Its name holds the offsets of its records, so that the position is written with
the records, by the same rename. A lock in the directory keeps a second run of the sink out.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from penstock.connectors.connector import BatchLimits, Row
from penstock.connectors.files.layouts import Layout
from penstock.core.graph.parts import Sink, Source
from penstock.core.records.schema import Schema
from penstock.errors import ConfigurationError, Problem, TransientError
from penstock.machine.locks import FileLock

__all__ = ["DirectoryWriter", "WrittenFiles"]

_OFFSET_DIGITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFiles:
    """A directory of files as a sink; ``json_files``, ``csv_files``, ``parquet_files`` make it."""

    directory: Path
    layout: Layout
    limits: BatchLimits
    words: str
    """What the files hold, for people."""
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    delivery: Literal["exactly_once"] = field(default="exactly_once", init=False)

    def describe(self) -> str:
        """Return where it writes, for people."""
        return f"{self.words} in {self.directory.name}"

    def open(self, sink: Sink) -> "DirectoryWriter":
        """Take the directory's lock for this stream, and look for what was written."""
        data = sink.reads
        return DirectoryWriter(
            self.directory, data.topic.name, layout=self.layout, schema=data.record.schema
        )

    def attempt(self, part: Sink | Source) -> str:
        """Look whether files can be written, without writing any."""
        place = self.directory
        there = next(path for path in (place, *place.absolute().parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise ConfigurationError(
                f"{there} cannot be written",
                code="sink.unwritable",
                hint=f"ls -ld {there}",
            )
        return f"{place} {'can be written' if there == place else 'will be made'} by {part.name}"


class DirectoryWriter:
    """The files of one stream in a directory; one process at a time writes them."""

    def __init__(self, directory: Path, topic: str, *, layout: Layout, schema: Schema) -> None:
        self._suffix = layout.suffix
        self._dump = layout.dump(schema)
        self._directory = directory
        self._topic = topic
        self._name = re.compile(
            rf"{re.escape(topic)}-(\d+)-\d{{{_OFFSET_DIGITS}}}-(\d{{{_OFFSET_DIGITS}}}){re.escape(layout.suffix)}"
        )
        self._lock = FileLock(directory / f".{topic}{layout.suffix}.lock")
        with _explained(directory):
            taken = self._lock.acquire()
        if not taken:
            raise TransientError(
                f"another run writes {topic} to {directory}",
                code="sink.taken",
                hint="it goes on when the other run has ended",
            )

    def positions(self) -> dict[int, int]:
        """Return for each partition the offset behind its files."""
        found: dict[int, int] = {}
        with _explained(self._directory):
            names = os.listdir(self._directory)  # noqa: PTH208 - names, not paths
        for name in names:
            if match := self._name.fullmatch(name):
                partition = int(match[1])
                found[partition] = max(int(match[2]), found.get(partition, 0))
        return found

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
        """Write one file; TransientError where the disk does not take it, and nothing is left."""
        first = rows[0].offset
        name = (
            f"{self._topic}-{partition}-{first:0{_OFFSET_DIGITS}d}"
            f"-{position:0{_OFFSET_DIGITS}d}{self._suffix}"
        )
        hidden = self._directory / f".{self._topic}-{partition}{self._suffix}.part"
        try:
            with hidden.open("wb") as file:
                self._dump(file, rows)
                file.flush()
                os.fsync(file.fileno())
            hidden.rename(self._directory / name)
            self._keep_name()
        except OSError as error:
            with suppress(OSError):
                hidden.unlink(missing_ok=True)
            raise TransientError(
                f"{self._directory / name} cannot be written: {error.strerror}",
                code="sink.unwritable",
                hint=f"df -h {self._directory}",
            ) from error

    def close(self) -> None:
        """Let another run have the directory."""
        self._lock.release()

    def _keep_name(self) -> None:
        """Flush the directory, so that the new name survives a crash of the machine."""
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _explained(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"{directory} cannot be written: {error.strerror}",
            code="sink.unwritable",
            hint=f"ls -ld {directory}",
        ) from error
