"""Bytes cut into lines, the length of each bounded; no I/O."""

from penstock.connectors.connector import Item
from penstock.errors import DataError

__all__ = ["Line", "LineCutter"]


class Line(Item, frozen=True, gc=False):
    """One line, without its line end; ``at`` is the position of its first byte in its input.

    Of a line that was longer than allowed ``content`` has only the first bytes.
    """

    end: int = 0
    """The byte position behind its line end: where the next line begins."""
    length: int = 0
    """How many bytes it had; more than ``content`` has where it was cut."""
    complete: bool = True
    """Whether its line end was seen."""

    @property
    def too_long(self) -> bool:
        """Whether it was longer than allowed."""
        return self.length > len(self.content)

    def fault(self) -> DataError | None:
        """Return why it cannot become a record: it was cut, or its end did not come."""
        if self.too_long:
            text = (
                f"the line has {self.length} bytes, {len(self.content)} are allowed and kept here"
            )
            return DataError(text, code="data.line-too-long")
        if not self.complete:
            text = f"the line ends after {self.length} bytes without a line end"
            return DataError(text, code="data.half-line")
        return None


class LineCutter:
    r"""Takes bytes as they come and gives the lines they complete.

    A line ends with ``\n`` or ``\r\n``. Of a line longer than ``max_line`` bytes the first so many
    are kept and the rest is only counted, so memory is bounded whatever is sent.

    >>> cutter = LineCutter(max_line=100)
    >>> [line.content for line in cutter.feed(b"to be\nor not")]
    [b'to be']
    >>> cutter.pending
    6
    """

    __slots__ = ("_at", "_held", "_length", "_max_line")

    def __init__(self, *, max_line: int, at: int = 0) -> None:
        self._max_line = max_line
        self._at = at
        self._held = b""
        self._length = 0

    @property
    def pending(self) -> int:
        """How many bytes of a line have come whose end has not."""
        return self._length

    def feed(self, data: bytes) -> list[Line]:
        """Return the lines that these bytes complete, in order."""
        *ended, rest = data.split(b"\n")
        lines = [self._complete(piece) for piece in ended]
        self._hold(rest)
        return lines

    def finish(self) -> Line | None:
        """Return what is held of a line without an end, and forget it; None: nothing is held."""
        if not self._length:
            return None
        line = self._line(end=self._at + self._length, complete=False)
        self._begin(line.end)
        return line

    def _complete(self, piece: bytes) -> Line:
        self._hold(piece)
        line = self._line(end=self._at + self._length + 1, complete=True)
        self._begin(line.end)
        return line

    def _line(self, *, end: int, complete: bool) -> Line:
        content, length = self._held, self._length
        if complete and length == len(content) and content.endswith(b"\r"):
            content, length = content[:-1], length - 1
        return Line(content[: self._max_line], self._at, end, length, complete)

    def _hold(self, piece: bytes) -> None:
        # One byte more than allowed is held, so that "\r" before "\n" does not count as content.
        room = self._max_line + 1 - len(self._held)
        if room > 0:
            self._held += piece[:room]
        self._length += len(piece)

    def _begin(self, at: int) -> None:
        self._at = at
        self._held = b""
        self._length = 0
