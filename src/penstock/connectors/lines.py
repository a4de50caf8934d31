"""Bytes cut into lines, the length of each bounded; no I/O."""

import msgspec

__all__ = ["Line", "LineCutter"]


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of the outside, without its line end."""

    at: int
    """The byte position of its first byte in its input."""
    end: int
    """The byte position behind its line end: where the next line begins."""
    content: bytes
    """Its bytes; only the first of them where it was longer than allowed."""
    length: int
    """How many bytes it had; more than ``content`` has where it was cut."""
    complete: bool = True
    """Whether its line end was seen."""

    @property
    def too_long(self) -> bool:
        """Whether it was longer than allowed."""
        return self.length > len(self.content)


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
        return Line(self._at, end, content[: self._max_line], length, complete)

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
