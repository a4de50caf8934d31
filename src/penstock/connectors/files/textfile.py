"""Lines of a text file, exactly once.

A file is read from its start. After a restart, reading goes on where it stopped. The file may grow,
but the part that was read must not change; the fingerprint in the position checks this. A file that
was truncated, rewritten or replaced is refused, because a person must decide about the lines that
are lost. A source with another name reads the file from its start.
"""

import hashlib
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

from penstock.connectors.connector import WHOLE, Position
from penstock.connectors.lines import Line, LineCutter
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.ratelimit import RateLimit
from penstock.core.units import size_text
from penstock.errors import ConfigurationError, Problem

__all__ = ["FilePosition", "FileReading", "TextFile", "text_file"]

_MAX_LINE = 1 << 20
_READ_BYTES = 1 << 20
_READS_AT_ONCE = 64
"""How much of an endless line is skipped before the source does anything else."""
_BATCH_LINES = 5_000
"""The most lines of one transaction."""
_FINGERPRINT_BYTES = 4 << 10
"""How many bytes are compared at the start and at the end of what was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A text file as a source; ``text_file`` makes it."""

    path: Path
    follow: bool = False
    repeat: bool = False
    rate: float | None = None
    max_line: int = _MAX_LINE
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: bool = field(default=False, init=False)
    grows: bool = field(default=False, init=False)

    def describe(self) -> str:
        """Return the file and how it is read, for people."""
        words = [f"lines of {self.path.name}"]
        if self.follow:
            words.append("as it grows")
        if self.repeat:
            words.append("again and again")
        if self.rate is not None:
            words.append(f"{self.rate:g} a second")
        return ", ".join(words)

    def splits(self) -> tuple[str, ...]:
        """Return the name of its one split."""
        return (WHOLE,)

    def open(
        self, _split: str, position: Position | None, *, clock: Callable[[], float] = time.monotonic
    ) -> "FileReading":
        """Open the file at a position; ConfigurationError if it is not the same file any more."""
        left = None if position is None else FilePosition.load(position)
        with _explained(self.path):
            # Non-blocking, because opening a named pipe would wait for its writer.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return FileReading(self, descriptor, left, RateLimit(self.rate, clock=clock))
        except BaseException:
            os.close(descriptor)
            raise


def text_file(
    path: str | Path,
    *,
    follow: bool = False,
    repeat: bool = False,
    rate: float | None = None,
    max_line: str | int = _MAX_LINE,
) -> TextFile:
    """Read a text file line by line, exactly once.

    Lines and position are committed together, so a source that is killed goes on where it was. A
    file that was cut or replaced is refused. Without ``follow`` the source ends at the end of the
    file, and its last line needs no line end; run again, it goes on with what was appended.

    Args:
        path: The file; a relative path is looked up where the source runs.
        follow: Wait for lines that are appended; a line counts when its line end is there.
        repeat: Begin again at the end, for demonstrations; such a file must not change.
        rate: The most lines per second.
        max_line: How long a line may be; a longer one becomes a dead letter.

    Examples:
        >>> followed = app.source("log", text_file("readings.jsonl", follow=True), into=readings)
    """
    problems: list[Problem] = []
    options = ConnectorOptions("text_file", problems)
    given: Any = path
    if not isinstance(given, str | Path):
        options.wrong("path", f"{given!r} is not a path", 'name a file: text_file("lines.txt")')
    followed, repeated = options.flag("follow", follow), options.flag("repeat", repeat)
    if followed and repeated:
        options.wrong("follow", "a file is either followed or repeated", "leave one of them out")
    return TextFile(
        path=Path(given) if isinstance(given, str | Path) else Path(),
        follow=followed,
        repeat=repeated,
        rate=options.maybe_rate("rate", rate),
        max_line=options.size("max_line", max_line, _MAX_LINE),
        problems=tuple(problems),
    )


class FilePosition(msgspec.Struct, frozen=True):
    """How far a file was read, and the fingerprint that identifies it."""

    at: int
    """How many bytes were read; with ``repeat``, over all rounds."""
    fingerprint: str

    @classmethod
    def load(cls, position: Position) -> Self:
        """Return the position from a value of ``dump``; ConfigurationError for any other."""
        try:
            return msgspec.convert(position, cls)
        except msgspec.ValidationError as error:
            raise ConfigurationError(
                f"{position!r} is not a position of a text file: {error}",
                code="source.position",
                hint="another connector wrote it: give the source another name",
            ) from error

    def dump(self) -> Position:
        """Return it as a JSON value."""
        return {"at": self.at, "fingerprint": self.fingerprint}


class FileReading:
    """One pass over a file (with ``repeat`` many rounds, whose bytes are counted on and on)."""

    def __init__(
        self, spec: TextFile, descriptor: int, position: FilePosition | None, pace: RateLimit
    ) -> None:
        self._spec = spec
        self._descriptor = descriptor
        self._pace = pace
        self._status = os.fstat(descriptor)
        if not stat.S_ISREG(self._status.st_mode):
            raise ConfigurationError(
                f"{spec.path} is not a file", code="source.not-a-file", hint="name a regular file"
            )
        self._at = position.at if position else 0
        self._round = self._round_of(self._at)
        if position:
            self._recognise(position)
        self._cutter = LineCutter(max_line=spec.max_line, at=self._at)
        self._scanned = self._at
        self._head, self._tail = self._edges(self._scanned - self._round)
        self._waiting: deque[Line] = deque()
        self._ended = False

    @property
    def position(self) -> Position:
        """Where the lines given out so far end."""
        return FilePosition(self._at, self._fingerprint(self._at)).dump()

    def position_after(self, line: Line) -> Position:
        """Return where a line ends; ConfigurationError if the file was rewritten meanwhile."""
        position = FilePosition(line.end, self._fingerprint(line.end))
        self._require_same_content()
        return position.dump()

    @property
    def ended(self) -> bool:
        """Whether the file is read to its end and not followed."""
        return self._ended and not self._waiting

    def read(self) -> list[Line]:
        """Return the next lines that are there and due; at most a batch."""
        if not self._waiting and not self._ended:
            self._fill()
        count = self._pace.due(min(len(self._waiting), _BATCH_LINES))
        lines = [self._waiting.popleft() for _ in range(count)]
        if lines:
            self._at = lines[-1].end
        return lines

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _fill(self) -> None:
        for _ in range(_READS_AT_ONCE):
            with _explained(self._spec.path):
                data = os.pread(self._descriptor, _READ_BYTES, self._scanned - self._round)
            # Looked at behind the read: what was rewritten before it is seen, and not read on.
            self._require_same_content()
            self._remember(data)
            self._scanned += len(data)
            self._waiting.extend(self._cutter.feed(data))
            if not data:
                self._reach_end()
            if self._waiting or not data:
                return

    def _reach_end(self) -> None:
        self._require_same_file()
        if self._spec.follow:
            return
        if last := self._cutter.finish():
            self._waiting.append(msgspec.structs.replace(last, complete=True))
        if self._spec.repeat and self._scanned:
            self._round = self._scanned
            self._head = self._tail = b""
        else:
            self._ended = True

    def _require_same_content(self) -> None:
        """Refuse a file of which what was read is not there any more, however long it is now."""
        read = self._scanned - self._round
        if self._edges(read) != (self._head, self._tail):
            size = os.fstat(self._descriptor).st_size
            if size < read:
                raise self._changed(f"it has {size} bytes, {read} were read")
            raise self._changed(f"its first {read} bytes were rewritten while it was being read")

    def _remember(self, data: bytes) -> None:
        """Keep the beginning and the end of what was read, as it was read."""
        at = self._scanned - self._round
        if at < _FINGERPRINT_BYTES:
            self._head = self._head[:at] + data[: _FINGERPRINT_BYTES - at]
        self._tail = (self._tail + data)[-_FINGERPRINT_BYTES:]

    def _edges(self, end: int) -> tuple[bytes, bytes]:
        """Return what the file has at its start, and before an offset, up to that offset."""
        begin = max(0, end - _FINGERPRINT_BYTES)
        with _explained(self._spec.path):
            head = os.pread(self._descriptor, min(end, _FINGERPRINT_BYTES), 0)
            return head, os.pread(self._descriptor, end - begin, begin)

    def _require_same_file(self) -> None:
        size, read = os.fstat(self._descriptor).st_size, self._scanned - self._round
        if size < read:
            raise self._changed(f"it has {size} bytes, {read} were read")
        if self._spec.repeat and size != self._status.st_size:
            raise self._changed(f"it has {size} bytes, it had {self._status.st_size}")
        if self._spec.follow:
            with _explained(self._spec.path):
                there = self._spec.path.stat()
            if not os.path.samestat(there, self._status):
                raise self._changed("another file has its name")

    def _recognise(self, position: FilePosition) -> None:
        size, read = self._status.st_size, position.at - self._round
        if size < read:
            raise self._changed(f"it has {size} bytes, {read} were read")
        if self._fingerprint(position.at) != position.fingerprint:
            what = "size or content" if self._spec.repeat else f"first {read} bytes"
            raise self._changed(f"its {what} changed, or whether it is repeated")

    def _round_of(self, at: int) -> int:
        """Return the position at which the round began that ends at or behind ``at``."""
        size = self._status.st_size
        if not self._spec.repeat or not size:
            return 0
        return max(0, at - 1) // size * size

    def _fingerprint(self, at: int) -> str:
        """Return a digest of bytes before ``at``, so that growing does not change it."""
        head, tail = self._edges(at - self._round_of(at))
        digest = hashlib.blake2b(digest_size=8)
        if self._spec.repeat:
            digest.update(self._status.st_size.to_bytes(8))
        digest.update(head)
        digest.update(tail)
        return digest.hexdigest()

    def _changed(self, how: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self._spec.path} is not the file that was read so far: {how}",
            code="source.file-changed",
            detail=f"read so far: {size_text(self._at)}",
            hint="put the file back, or give the source another name to read it from its start",
        )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}",
            code="source.file-unreadable",
            hint=f"ls -l {path}",
        ) from error
