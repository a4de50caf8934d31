"""A terminal that people look at: whatever is written to it or drawn on it is printable.

The last line of defence: callers make their text printable before they lay it out, and what they
forget is caught here. Colours and cursor movements of the drawing library itself pass.
"""

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from penstock.core.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Screen", "drawing_console"]


class Screen(io.TextIOBase, TextIO):
    """A terminal for plain text: lines end, and everything else in a text is only shown."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, made printable."""
        self._stream.write(_kept_lines(text))
        return len(text)

    def flush(self) -> None:
        """Write what waits."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Return that people look at it."""
        return True

    def fileno(self) -> int:
        """Return the terminal's file."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return that it takes text."""
        return True


def drawing_console(stream: TextIO) -> "Console":
    """Return what draws on a stream; markup in a text is text."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class PrintableConsole(Console):
        """Draws text as it is shown; only the library's own segments control the terminal."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or _is_plain(segment.text):
                    yield segment
                else:
                    yield Segment(_kept_lines(segment.text), segment.style)

    return PrintableConsole(file=stream, highlight=False, markup=False, emoji=False)


def _is_plain(text: str) -> bool:
    return text.isascii() and (text.isprintable() or text == "\n")


def _kept_lines(text: str) -> str:
    return "\n".join(printable(line, most=len(line)) for line in text.split("\n"))
