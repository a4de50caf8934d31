"""A log that grows and is rotated, as a source: each line once, across rotations.

A file is known by what stands first in it and right before the place where it was read to,
whatever its name is now: ``app.log`` becomes ``app.log.1``, or ``app.log.2.gz``. So a source that
was away for several rotations goes on in the file where it was, and then in those after it.
"""

import gzip
import hashlib
import os
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.connectors.connector import WHOLE, Item, Position
from penstock.connectors.lines import Line, LineCutter
from penstock.connectors.options import ConnectorOptions
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, Problem

__all__ = ["RotatedLog", "rotated_log"]

_MAX_LINE = 1 << 16
_READ_BYTES = 1 << 18
_EDGE = 256
_MOST_FILES = 1_000
_REMEMBERED = 8
"""Files that were read last, and are known again when they are compressed."""


class LogPlace(msgspec.Struct, frozen=True):
    """How far a log was read: a place, and what stands first and right before it in that file."""

    at: int
    edges: str
    inode: int
    """Only a hint where to look first: a copy has another one."""


class LogLine(Line, frozen=True):
    """A line, and which of the files that were read it stands in."""

    file: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedLog:
    """A log and the files that it was rotated to; :func:`rotated_log` makes it."""

    path: Path
    grace: timedelta
    max_line: int
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: Literal[False] = field(default=False, init=False)
    grows: Literal[True] = field(default=True, init=False)

    def describe(self) -> str:
        """Return what it reads, for people."""
        return f"lines of {self.path.name}, across rotations"

    def splits(self) -> Sequence[str]:
        """Return the only split."""
        return (WHOLE,)

    def open(
        self, _split: str, position: Position | None, *, clock: Callable[[], float] = time.monotonic
    ) -> "RotatedReading":
        """Go on where it was; ConfigurationError if that file is gone."""
        return RotatedReading(self, position, clock)

    def attempt(self, part: Source | Sink) -> str:
        """Look for the log and what it was rotated to."""
        count = len(_files(self.path))
        return f"{count} file{'' if count == 1 else 's'} of {self.path.name} for {part.name}"


class OpenLog:
    """One file of the log, decompressed where its name says so."""

    def __init__(self, path: Path, number: int) -> None:
        self.number = number
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._file = os.fdopen(descriptor, "rb", buffering=0)
        self._inner = gzip.GzipFile(fileobj=self._file) if path.suffix == ".gz" else None
        self.status = os.fstat(descriptor)
        self.head = b""
        self._recent, self._recent_at = b"", 0

    def read_at(self, at: int, count: int) -> bytes:
        """Return bytes from a place on; fewer at the end."""
        if self._inner is None:
            return os.pread(self._file.fileno(), count, at)
        self._inner.seek(at)
        return self._inner.read(count)

    def take(self, at: int, data: bytes) -> None:
        """Remember the edges of what was read, as it was read."""
        if at < _EDGE:
            self.head = (self.head[:at] + data)[:_EDGE]
        self._recent = self._recent[-_EDGE:] + data
        self._recent_at = at + len(data) - len(self._recent)

    def begin(self, at: int) -> None:
        """Remember the edges of what another run has read."""
        self.head = self.read_at(0, min(at, _EDGE))
        self._recent_at = max(0, at - _EDGE)
        self._recent = self.read_at(self._recent_at, at - self._recent_at)

    def place(self, at: int) -> LogPlace:
        """Return a place in what was read last."""
        end = at - self._recent_at
        tail = self._recent[max(0, end - _EDGE) : end]
        return LogPlace(at, _digest(self.head[: min(at, _EDGE)], tail), self.status.st_ino)

    def holds(self, place: LogPlace) -> bool:
        """Return whether it is the file of a place, and goes as far."""
        start = max(0, place.at - _EDGE)
        try:
            head = self.read_at(0, min(place.at, _EDGE))
            tail = self.read_at(start, place.at - start)
        except (EOFError, OSError, zlib.error):
            return False  # it is being compressed now, or is none
        return len(tail) == place.at - start and _digest(head, tail) == place.edges

    @property
    def written_at(self) -> int:
        """When it was last written, in nanoseconds."""
        return os.fstat(self._file.fileno()).st_mtime_ns

    def is_as_read(self, at: int) -> bool:
        """Return whether it still has what was read of it."""
        return self._inner is not None or self.holds(self.place(at))

    def close(self) -> None:
        """Close it."""
        self._file.close()


class RotatedReading:
    """One pass over a log, through all its files."""

    ended = False

    def __init__(
        self, spec: RotatedLog, position: Position | None, clock: Callable[[], float]
    ) -> None:
        self._spec, self._clock = spec, clock
        self._count = 0
        self._open: dict[int, OpenLog] = {}
        self._finished: deque[LogPlace] = deque(maxlen=_REMEMBERED)
        self._now: OpenLog | None = None
        self._scanned = 0
        self._left_at: float | None = None
        self._cutter = LineCutter(max_line=spec.max_line)
        if position is not None:
            self._find(_load(position))

    def read(self) -> list[LogLine]:
        """Return the next lines that are there."""
        try:
            return self._read()
        except (OSError, EOFError) as error:
            words = getattr(error, "strerror", None) or str(error)
            raise ConfigurationError(
                f"{self._spec.path} cannot be read: {words}",
                code="source.file-unreadable",
                hint=f"ls -l {self._spec.path}*",
            ) from error

    def position_after(self, item: Item) -> Position:
        """Return the place behind a line."""
        if not isinstance(item, LogLine):
            raise TypeError("no line of a log")
        for number in [number for number in self._open if number < item.file]:
            self._open.pop(number).close()
        place: Position = msgspec.to_builtins(self._open[item.file].place(item.end))
        return place

    def close(self) -> None:
        """Close what is open."""
        for each in self._open.values():
            each.close()

    def _read(self) -> list[LogLine]:
        if self._now is None:
            found = _files(self._spec.path)
            if self._spec.path not in found:
                return []
            self._enter(OpenLog(self._spec.path, self._count), 0)
        log = self._now
        if log is None:
            return []
        data = log.read_at(self._scanned, _READ_BYTES)
        # Looked at behind the read: what was emptied and has grown again is seen, and not read on.
        if not log.is_as_read(self._scanned):
            return self._emptied(log)
        if data:
            self._left_at = None
            log.take(self._scanned, data)
            self._scanned += len(data)
            return self._lines(self._cutter.feed(data), log)
        return self._at_end(log)

    def _lines(self, lines: Sequence[Line], log: OpenLog) -> list[LogLine]:
        return [
            LogLine(each.content, each.at, each.end, each.length, each.complete, log.number)
            for each in lines
        ]

    def _at_end(self, log: OpenLog) -> list[LogLine]:
        """Look whether the log goes on in another file; return a last line without an end."""
        following = self._following(log)
        if following is None:
            self._left_at = None
            return []
        now = self._clock()
        self._left_at = now if self._left_at is None else self._left_at
        if now - self._left_at < self._spec.grace.total_seconds():
            return []  # whoever writes may not have noticed yet
        self._finished.append(log.place(self._scanned))
        last = self._cutter.finish()
        self._enter(OpenLog(following, self._count), 0)
        whole = [] if last is None else [msgspec.structs.replace(last, complete=True)]
        return self._lines(whole, log)

    def _emptied(self, log: OpenLog) -> list[LogLine]:
        """Go on in the copy of a log that was emptied in place, or say that lines are lost."""
        place = log.place(self._scanned)
        for path in _files(self._spec.path):
            copy = OpenLog(path, self._count)
            if not os.path.samestat(copy.status, log.status) and copy.holds(place):
                copy.begin(self._scanned)
                self._enter(copy, self._scanned, keeps_line=True)
                return []
            copy.close()
        raise ConfigurationError(
            f"{self._spec.path} was emptied, and there is no copy of what was read of it",
            code="source.file-changed",
            detail="lines that were written before it was emptied may be lost",
            hint="give the source another name: it begins with what is there now",
        )

    def _following(self, log: OpenLog) -> Path | None:
        """Return the file that came after one; None: it is the newest."""
        live, own, newer = self._spec.path, log.written_at, []
        for path in _files(live):
            status = path.stat()
            if os.path.samestat(status, log.status):
                if path == live:
                    return None
                continue
            if path == live or status.st_mtime_ns >= own:
                newer.append((path == live, status.st_mtime_ns, path))
        for _, _, path in sorted(newer):
            if path == live or not self._is_copy(path, log):
                return path
        return None

    def _is_copy(self, path: Path, log: OpenLog) -> bool:
        """Return whether a file is one that was read just now, compressed meanwhile."""
        other = OpenLog(path, 0)
        try:
            ends = [*self._finished, log.place(self._scanned)]
            return any(other.holds(place) for place in ends if place.at)
        finally:
            other.close()

    def _find(self, place: LogPlace) -> None:
        """Open the file of a place, whatever its name is now."""
        paths = _files(self._spec.path)
        for path in sorted(paths, key=lambda path: path.stat().st_ino != place.inode):
            log = OpenLog(path, self._count)
            if log.holds(place):
                log.begin(place.at)
                self._enter(log, place.at)
                return
            log.close()
        raise ConfigurationError(
            f"no file of {self._spec.path} begins as the one that was read so far",
            code="source.gap",
            detail="it was deleted before all of it was read: lines may be lost",
            hint="put it back, or give the source another name: it begins with what is there now",
        )

    def _enter(self, log: OpenLog, at: int, *, keeps_line: bool = False) -> None:
        self._open[log.number] = log
        self._now, self._scanned, self._left_at = log, at, None
        self._count += 1
        if not keeps_line:
            self._cutter = LineCutter(max_line=self._spec.max_line, at=at)


def rotated_log(
    path: str | Path,
    *,
    grace: str | timedelta = "2s",
    max_line: str | int = _MAX_LINE,
) -> RotatedLog:
    """Follow a log that grows and is rotated, exactly once.

    When ``app.log`` is renamed (``app.log.1``, ``app.log-2026-11-19``, ``app.log.2.gz``) and a new
    one begins, the old one is read to its end first, then those between, then the new one. A source
    that was away finds the file where it was by what stands in it. Where a log is copied and
    emptied, the rest is read from the copy. If what was not read is gone, the source fails and says
    so. It does not end.

    Args:
        path: The log. What it was rotated to is in the same directory, and begins with its name.
        grace: How long a file that was renamed must not have grown before the next one is read.
        max_line: How long a line may be; a longer one becomes a dead letter.

    Examples:
        >>> followed = app.source("log", rotated_log("/var/log/app.log"), into=readings)
        >>> followed.summary
        'source, lines of app.log, across rotations'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("rotated_log", problems)
    given: Any = path
    if not isinstance(given, str | Path) or not Path(given).name:
        options.wrong("path", f"{given!r} is not a path", 'rotated_log("/var/log/app.log")')
        given = "unknown"
    return RotatedLog(
        path=Path(given),
        grace=options.span("grace", grace, timedelta(seconds=2)),
        max_line=options.size("max_line", max_line, _MAX_LINE),
        problems=tuple(problems),
    )


def _files(path: Path) -> list[Path]:
    """Return the log, if it is there, and what it was rotated to."""
    try:
        names = sorted(os.listdir(path.absolute().parent))  # noqa: PTH208 - names, not paths
    except OSError as error:
        raise ConfigurationError(
            f"{path.parent} cannot be read: {error.strerror}",
            code="source.file-unreadable",
            hint=f"ls -ld {path.parent}",
        ) from error
    found = [path.parent / name for name in names if name.startswith(path.name)]
    return [each for each in found if each.is_file()][:_MOST_FILES]


def _load(position: Position) -> LogPlace:
    try:
        return msgspec.convert(position, LogPlace)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"{position!r} is not a position of a log: {error}",
            code="source.position",
            hint="another connector wrote it: give the source another name",
        ) from error


def _digest(head: bytes, tail: bytes) -> str:
    return hashlib.blake2b(head + b"\0" + tail, digest_size=8).hexdigest()
