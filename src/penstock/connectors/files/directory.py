"""The files of a directory as a source, exactly once: each file is a split, and complete.

Files may be compressed. A file that turns out to be broken gives what is before that place, and a
dead letter that says from where on nothing could be read.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.connectors.connector import Item, Position
from penstock.connectors.files.formats import FORMATS, FileItem, Format, read_items
from penstock.connectors.options import ConnectorOptions
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, Problem

__all__ = ["Directory", "files_in"]

_MAX_LINE = 1 << 20
_AT_ONCE = 5_000
_HEAD = 4096
_HIDDEN = (".", "_")
_UNFINISHED = (".tmp", ".part", ".crdownload")


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """Files of a directory; :func:`files_in` makes it."""

    directory: Path
    pattern: str
    format: Format
    settled: timedelta
    max_line: int
    ends: bool
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: Literal[False] = field(default=False, init=False)

    @property
    def grows(self) -> bool:
        """Whether files may be added while it runs."""
        return not self.ends

    def describe(self) -> str:
        """Return what it reads, for people."""
        return f"{self.format} of {self.directory.name}/{self.pattern}"

    def splits(self) -> Sequence[str]:
        """Return the names of the files that are complete, in their order."""
        young = time.time() - self.settled.total_seconds()
        try:
            found = [
                path.name
                for path in self.directory.glob(self.pattern)
                if not path.name.startswith(_HIDDEN)
                and path.suffix not in _UNFINISHED
                and path.is_file()
                and path.stat().st_mtime <= young
            ]
        except OSError as error:
            raise _unreadable(self.directory, error) from error
        if not self.directory.is_dir():
            raise ConfigurationError(
                f"{self.directory} is no directory",
                code="source.file-unreadable",
                hint=f"mkdir -p {self.directory}",
            )
        return sorted(found)

    def open(self, split: str, position: Position | None) -> "DirectoryReading":
        """Open a file; ConfigurationError if it is not what was read so far."""
        if Path(split).name != split:
            raise ConfigurationError(f"{split!r} is no file's name", code="source.position")
        return DirectoryReading(self, self.directory / split, position)

    def attempt(self, part: Source | Sink) -> str:
        """Look at the directory."""
        count = len(self.splits())
        return f"{count} file{'' if count == 1 else 's'} for {part.name} now"


class FilePlace(msgspec.Struct, frozen=True):
    """How far a file was read, and which one that was."""

    size: int
    head: str
    at: int = 0
    """Bytes after decompression, or rows."""
    number: int = 0


class DirectoryReading:
    """One pass over one file."""

    def __init__(self, spec: Directory, path: Path, position: Position | None) -> None:
        self._spec, self._path = spec, path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise _unreadable(path, error) from error
        # A stream of its own: what reads a format closes it at the end of the file.
        self._stream = os.fdopen(os.dup(self._descriptor), "rb")
        try:
            place = self._identity()
            if position is not None:
                place = self._same(self._load(position), place)
            self._place = place
            self._items: Iterator[FileItem] = read_items(
                self._stream, path, spec.format, start=(place.at, place.number), most=spec.max_line
            )
        except BaseException:
            self.close()
            raise
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the file was read to its end."""
        return self._ended

    def read(self) -> list[FileItem]:
        """Return the next items."""
        try:
            found = list(islice(self._items, _AT_ONCE))
            size = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise _unreadable(self._path, error) from error
        if size != self._place.size:
            raise self._changed(f"it has {size} bytes, it had {self._place.size}")
        self._ended = not found
        return found

    def position_after(self, item: Item) -> Position:
        """Return the place behind an item."""
        if not isinstance(item, FileItem):
            raise TypeError("no item of a file")
        place = self._place
        return msgspec.to_builtins(FilePlace(place.size, place.head, item.end, item.at + 1))

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError, ValueError):
            self._stream.close()
        os.close(self._descriptor)

    def _same(self, left: FilePlace, found: FilePlace) -> FilePlace:
        if (left.size, left.head) != (found.size, found.head):
            raise self._changed(f"it has {found.size} bytes, it had {left.size}")
        return left

    def _identity(self) -> FilePlace:
        head = os.pread(self._descriptor, _HEAD, 0)
        digest = hashlib.blake2b(head, digest_size=8).hexdigest()
        return FilePlace(os.fstat(self._descriptor).st_size, digest)

    def _load(self, position: Position) -> FilePlace:
        try:
            return msgspec.convert(position, FilePlace)
        except msgspec.ValidationError as error:
            raise ConfigurationError(
                f"{position!r} is not a position of a file: {error}",
                code="source.position",
                hint="another connector wrote it: give the source another name",
            ) from error

    def _changed(self, how: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self._path} changed although it was there: {how}",
            code="source.file-changed",
            hint="write files under a hidden name and rename them; put a changed one there anew",
        )


def files_in(
    directory: str | Path,
    *,
    pattern: str = "*",
    format: Format = "lines",  # noqa: A002 - what a user calls it
    ends: bool = False,
    settled: str | timedelta = "1s",
    max_line: str | int = _MAX_LINE,
) -> Directory:
    """Read the files of a directory, exactly once, and those that are added while it runs.

    A file is a split; it is read once, whenever the source is killed. It has to be complete when it
    is there: write it under a hidden name and rename it. A file that changes afterwards is refused.
    Files that end with ``.gz`` or ``.zst`` are decompressed. Hidden ones, and those that end with
    ``.tmp`` or ``.part``, are left out.

    Args:
        directory: Where the files are; a relative path is looked up where the source runs.
        pattern: Which files: ``"*.csv"``.
        format: ``"lines"`` and ``"json"``: a line is an item. ``"csv"``: a row is one, by the names
            in the first row. ``"parquet"``: a row is one.
        ends: Whether the source ends when the files that are there have been read.
        settled: How long a file must not have changed before it is read.
        max_line: How long a line may be; a longer one becomes a dead letter.

    Examples:
        >>> book = files_in("readings", pattern="*.csv.gz", format="csv")
        >>> app.source("book", book, into=readings).name
        'book'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("files_in", problems)
    given: Any = directory
    if not isinstance(given, str | Path):
        options.wrong("directory", f"{given!r} is not a path", 'name one: files_in("in")')
    name = options.text("pattern", pattern, "*", 'pattern="*.csv", for example')
    if not name or "/" in name or "\0" in name:
        options.wrong("pattern", f"{pattern!r} is no pattern of names", 'pattern="*.csv"')
        name = "*"
    return Directory(
        directory=Path(given) if isinstance(given, str | Path) else Path(),
        pattern=name,
        format=options.word("format", format, FORMATS, "lines"),
        settled=options.span("settled", settled, timedelta(seconds=1)),
        max_line=options.size("max_line", max_line, _MAX_LINE),
        ends=options.flag("ends", ends),
        problems=tuple(problems),
    )


def _unreadable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"{path} cannot be read: {error.strerror}",
        code="source.file-unreadable",
        hint=f"ls -l {path}",
    )
