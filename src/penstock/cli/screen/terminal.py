"""The output of a command: data on standard output, everything else on standard error.

On a terminal tables have borders and colours, elsewhere they are lines with tabs. ``NO_COLOR`` is
honoured. The drawing library is imported only when something is drawn.

What is said may hold text from outside, which must not control the terminal or forge a line. So
every method here makes its text printable, a line is one line whatever it holds, and what goes past
the methods (``out`` itself, ``console``) is made printable too where a person reads it.
"""

import sys
import traceback
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from penstock.cli.screen.screen import Screen, drawing_console
from penstock.core.printable import (
    CELL_CHARACTERS,
    LINE_CHARACTERS,
    json_printable,
    printable,
    printable_lines,
)
from penstock.core.settings.masking import without_secrets
from penstock.errors import DefinitionError, PenstockError, Problem

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

__all__ = ["Terminal", "cell", "indented", "problem_text", "shortened"]


class Terminal:
    """The two outputs of a command."""

    def __init__(self, *, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self.out: TextIO = Screen(self._out) if self._out.isatty() else self._out
        """Standard output for data that are written as text; on a terminal they are printable."""

    @property
    def draws(self) -> bool:
        """Whether data are read by a person at a terminal."""
        return self._out.isatty()

    @property
    def draws_notes(self) -> bool:
        """Whether messages are read by a person at a terminal."""
        return self._err.isatty()

    @cached_property
    def console(self) -> "Console":
        """Standard output for drawing."""
        return drawing_console(self._out)

    @cached_property
    def notes(self) -> "Console":
        """Standard error for drawing."""
        return drawing_console(self._err)

    def line(self, text: str) -> None:
        """Write one line of data; a line end inside it is shown, and ends nothing."""
        self._write(printable(text))

    def lines(self, text: str) -> None:
        """Write a text of several lines."""
        self._write("\n".join(printable_lines(text)))

    def row(self, values: Iterable[Any]) -> None:
        """Write one line of values parted by tabs; what a value holds of them is a space."""
        self._write("\t".join(cell(value, tab=" ") for value in values))

    def raw(self, value: bytes) -> None:
        """Write bytes and a line end as they are; on a terminal, what can be shown of them."""
        if self.draws:
            self._write(printable(value.decode(errors="backslashreplace")))
            return
        self._out.flush()
        self._out.buffer.write(value + b"\n")
        self._out.buffer.flush()

    def json(self, value: Any) -> None:
        """Write a value as JSON: indented on a terminal, one line elsewhere."""
        encoded = _json(value)
        if self.draws:
            encoded = msgspec.json.format(encoded, indent=2)
        self._write(json_printable(encoded))

    def json_line(self, value: Any) -> None:
        """Write a value as one line of JSON, as streams of values have it."""
        self._write(json_printable(_json(value)))

    def note(self, text: str) -> None:
        """Write something for the person, not for the next program."""
        self._say(printable(text), "dim")

    def notes_below(self, text: str) -> None:
        """Write a text of several lines for the person."""
        self._say("\n".join(printable_lines(text)), "dim")

    def warn(self, text: str) -> None:
        """Write something that the person should act on."""
        self._say(printable(text), "yellow")

    def _write(self, text: str) -> None:
        self._out.write(f"{text}\n")
        self._out.flush()

    def _say(self, text: str, style: str = "") -> None:
        if self.draws_notes:
            self.notes.print(text, style=style, soft_wrap=True)
        else:
            self._err.write(f"{text}\n")
            self._err.flush()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write rows: drawn on a terminal, elsewhere a line each, cells parted by tabs."""
        if not self.draws:
            for row in (columns, *rows):
                self.row(row)
            return
        from rich.table import Table
        from rich.text import Text

        kept = [list(row) for row in rows]
        table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
        for index, name in enumerate(columns):
            numbers = _all_numbers([row[index] for row in kept])
            justify: JustifyMethod = "right" if numbers else "left"
            shown = cell(name, most=CELL_CHARACTERS)
            table.add_column(shown, justify=justify, overflow="fold", min_width=len(shown))
        for row in kept:
            table.add_row(*(Text(cell(value, most=CELL_CHARACTERS)) for value in row))
        self.console.print(table)

    def error(self, error: PenstockError) -> None:
        """Write an error: what, where and why, then what to do next."""
        self.failure(f"{error.title} [{error.code}]")
        if isinstance(error, DefinitionError):
            for problem in error.problems:
                self._say(indented(problem_text(problem)))
        elif error.detail:
            self._say(indented(error.detail.replace("\n  ", "\n")))
        if error.hint:
            self._say(f"  hint: {printable(error.hint)}")

    def trace(self, error: BaseException) -> None:
        """Write the traceback of an exception."""
        text = without_secrets("".join(traceback.format_exception(error)).rstrip())
        self._say("\n".join(printable_lines(text)))

    def failure(self, text: str) -> None:
        """Write that something failed, in one line."""
        text = printable(text)
        if self.draws_notes:
            from rich.text import Text

            self.notes.print(Text.assemble(("error: ", "bold red"), text), soft_wrap=True)
        else:
            self._say(f"error: {text}")


def _all_numbers(values: Sequence[Any]) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in values]
    return bool(numbers) and all(numbers)


def _json(value: Any) -> str:
    """Return a value as JSON; text that cannot be encoded (half a surrogate pair) as escapes."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(value), enc_hook=str).decode()


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_encodable(name): _encodable(each) for name, each in value.items()}
        case list() | tuple():
            return [_encodable(each) for each in value]
        case None | int() | float():
            return value
    return _encodable(msgspec.to_builtins(value, enc_hook=str))


def cell(value: Any, *, most: int = LINE_CHARACTERS, tab: str = "\\t") -> str:
    """Return a value as one line of printable text; None is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(str(value).replace("\n", " ").replace("\t", tab), most=most)


def shortened(file: str | Path) -> str:
    """Return a file's path from the current directory, where it lies below it."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def problem_text(problem: Problem) -> str:
    """Return a problem as a line, and its hint as another, its file seen from here.

    What the message says in further lines is moved in, so that none of them looks like a problem.
    """
    where = f"{shortened(problem.place.file)}:{problem.place.line}: " if problem.place else ""
    hint = f"\n    hint: {printable(problem.hint)}" if problem.hint else ""
    # A message may name the places of others.
    first, *further = printable_lines(problem.message.replace(f"{Path.cwd()}/", ""))
    message = "\n".join([first, *(f"  {line.strip()}" for line in further)])
    return f"{printable(where)}{message} [{problem.code}]{hint}"


def indented(text: str) -> str:
    """Return the text with each of its lines printable and moved in."""
    return "\n".join(f"  {line}" for line in printable_lines(text))
