"""Records as files of JSON lines, exactly once.

A file is complete as soon as its name is there: it is written under a hidden name, flushed to the
disk and renamed. Its name holds the offsets of its records, so that the position is written with
the records, by the same rename. A lock in the directory keeps a second run of the sink out.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from penstock.connectors.connector import BatchLimits, Row
from penstock.connectors.options import ConnectorOptions
from penstock.core.graph.parts import Sink
from penstock.errors import ConfigurationError, Problem, TransientError
from penstock.machine.locks import FileLock

__all__ = ["JsonFileWriter", "JsonFiles", "json_files"]

_SPAN = timedelta(minutes=1)
_SIZE = 16 << 20
_ROWS = 100_000
_OFFSET_DIGITS = 20
_SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFiles:
    """A directory of files of JSON lines as a sink; :func:`json_files` makes it."""

    directory: Path
    limits: BatchLimits
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    delivery: Literal["exactly_once"] = field(default="exactly_once", init=False)

    def describe(self) -> str:
        """Return where it writes, for people."""
        return f"JSON lines in {self.directory.name}"

    def open(self, sink: Sink) -> "JsonFileWriter":
        """Take the directory's lock for this stream, and look for what was written."""
        return JsonFileWriter(self.directory, sink.reads.topic.name)


def json_files(
    directory: str | Path,
    *,
    every: str | timedelta = _SPAN,
    size: str | int = _SIZE,
) -> JsonFiles:
    """Write the records of a stream as files of JSON lines, exactly once.

    A file holds records of one partition, in their order, and is there as a whole or not at all:
    ``<topic>-<partition>-<first offset>-<next offset>.jsonl``. Files may be moved away or deleted,
    but not between a crash of the sink and its next start. A second run of the sink on this machine
    waits until the first one has ended. Files of a topic that was created again are refused
    (``sink.beyond-end``) as long as the new one is shorter.

    Args:
        directory: Where the files are written; a relative path is looked up where the sink runs.
        every: How long the first record of a file waits for others.
        size: How large the records of a file are at most; it also has at most 100,000 of them.

    Examples:
        >>> exported = app.sink("export", json_files("out", every="1m"), reads=alarms)
    """
    problems: list[Problem] = []
    options = ConnectorOptions("json_files", problems)
    given: Any = directory
    if not isinstance(given, str | Path):
        options.wrong("directory", f"{given!r} is no path", 'name one: json_files("out")')
    limits = BatchLimits(
        rows=_ROWS,
        size=options.size("size", size, _SIZE),
        span=options.positive_span("every", every, _SPAN),
    )
    path = Path(given) if isinstance(given, str | Path) else Path()
    return JsonFiles(directory=path, limits=limits, problems=tuple(problems))


class JsonFileWriter:
    """The files of one stream in a directory; one process at a time writes them."""

    def __init__(self, directory: Path, topic: str) -> None:
        self._directory = directory
        self._topic = topic
        self._name = re.compile(
            rf"{re.escape(topic)}-(\d+)-\d{{{_OFFSET_DIGITS}}}-(\d{{{_OFFSET_DIGITS}}}){_SUFFIX}"
        )
        self._lock = FileLock(directory / f".{topic}.lock")
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
            f"-{position:0{_OFFSET_DIGITS}d}{_SUFFIX}"
        )
        hidden = self._directory / f".{self._topic}-{partition}.part"
        try:
            with hidden.open("wb") as file:
                for row in rows:
                    file.write(row.value.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n")
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
