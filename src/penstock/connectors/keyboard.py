"""Lines from standard input: typed by a person, or piped in by another program."""

import os
import select
import sys
from dataclasses import dataclass, field

import msgspec

from penstock.connectors.connector import Feed
from penstock.connectors.lines import LineCutter
from penstock.connectors.options import ConnectorOptions
from penstock.errors import ConfigurationError, Problem

__all__ = ["Keyboard", "keyboard", "read_lines"]

_MAX_LINE = 64 << 10
_READ_BYTES = 64 << 10
_LOOK_UP_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyboard:
    """Standard input as a source; ``keyboard`` makes it."""

    max_line: int = _MAX_LINE
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: bool = field(default=True, init=False)

    def describe(self) -> str:
        """Return what it reads, for people."""
        return "lines typed at the keyboard"

    def run(self, feed: Feed) -> None:
        """Read standard input until its end (Ctrl-D)."""
        if sys.stdin is None or sys.stdin.closed:
            raise ConfigurationError(
                "there is no standard input to read",
                code="source.no-input",
                hint="run the source in a terminal of its own: penstock run APP --part NAME",
            )
        read_lines(sys.stdin.fileno(), feed, max_line=self.max_line)


def keyboard(*, max_line: str | int = _MAX_LINE) -> Keyboard:
    """Read the lines that a person types, until the end of standard input.

    A line is written once, or lost if the process is killed before Kafka acknowledged it.
    ``penstock dev`` leaves it out, because it needs a terminal: run it with ``penstock run APP
    --part NAME``.

    Args:
        max_line: The longest line, in bytes; a longer one becomes a dead letter.

    Examples:
        >>> def parse(line: str) -> Alarm:
        ...     return Alarm("me", line)
        >>> typed = app.source("typed", keyboard(), into=alarms, parse=parse)
    """
    problems: list[Problem] = []
    bound = ConnectorOptions("keyboard", problems).size("max_line", max_line, _MAX_LINE)
    return Keyboard(max_line=bound, problems=tuple(problems))


def read_lines(descriptor: int, feed: Feed, *, max_line: int = _MAX_LINE) -> None:
    """Put the lines of an open file, pipe or terminal into the feed until it ends."""
    cutter = LineCutter(max_line=max_line)
    while not feed.stop.is_set():
        ready, _, _ = select.select([descriptor], [], [], _LOOK_UP_SECONDS)
        if not ready:
            feed.settle()
            continue
        data = os.read(descriptor, _READ_BYTES)
        for line in cutter.feed(data):
            feed.put(line)
        if not data:
            # Whoever ends the input says that the last line is whole.
            if last := cutter.finish():
                feed.put(msgspec.structs.replace(last, complete=True))
            return
