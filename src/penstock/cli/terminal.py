"""What a command says: data on standard output, everything else on standard error.

On a terminal tables have borders and colours, elsewhere they are lines with tabs. ``NO_COLOR`` is
honoured. The drawing library is imported only when something is drawn.
"""

import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from penstock.errors import DefinitionError, PenstockError, Problem

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

__all__ = ["Terminal", "cell", "indented", "problem_text", "shortened"]


class Terminal:
    """The two outputs of a command."""

    def __init__(self, *, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.err = err or sys.stderr

    @property
    def draws(self) -> bool:
        """Whether data are read by a person at a terminal."""
        return self.out.isatty()

    @property
    def draws_notes(self) -> bool:
        """Whether messages are read by a person at a terminal."""
        return self.err.isatty()

    @cached_property
    def console(self) -> "Console":
        """Standard output for drawing."""
        from rich.console import Console

        return Console(file=self.out, highlight=False, markup=False, emoji=False)

    @cached_property
    def notes(self) -> "Console":
        """Standard error for drawing."""
        from rich.console import Console

        return Console(file=self.err, highlight=False, markup=False, emoji=False)

    def line(self, text: str) -> None:
        """Write one line of data."""
        self.out.write(f"{text}\n")
        self.out.flush()

    def json(self, value: Any) -> None:
        """Write a value as JSON: indented on a terminal, one line elsewhere."""
        encoded = msgspec.json.encode(value, enc_hook=str)
        if self.draws:
            encoded = msgspec.json.format(encoded, indent=2)
        self.line(encoded.decode())

    def json_line(self, value: Any) -> None:
        """Write a value as one line of JSON, as streams of values have it."""
        self.line(msgspec.json.encode(value, enc_hook=str).decode())

    def note(self, text: str) -> None:
        """Write something for the person, not for the next program."""
        self._say(text, "dim")

    def warn(self, text: str) -> None:
        """Write something that the person should act on."""
        self._say(text, "yellow")

    def _say(self, text: str, style: str = "") -> None:
        if self.draws_notes:
            self.notes.print(text, style=style, soft_wrap=True)
        else:
            self.err.write(f"{text}\n")
            self.err.flush()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write rows: drawn on a terminal, elsewhere a line each, cells parted by tabs."""
        if not self.draws:
            for row in (columns, *rows):
                self.line("\t".join(cell(value).replace("\t", " ") for value in row))
            return
        from rich.table import Table
        from rich.text import Text

        kept = [list(row) for row in rows]
        table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
        for index, name in enumerate(columns):
            numbers = _all_numbers([row[index] for row in kept])
            justify: JustifyMethod = "right" if numbers else "left"
            table.add_column(name, justify=justify, overflow="fold", min_width=len(name))
        for row in kept:
            table.add_row(*(Text(cell(value)) for value in row))
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
            self._say(f"  hint: {error.hint}")

    def failure(self, text: str) -> None:
        """Write that something failed, in one line."""
        if self.draws_notes:
            from rich.text import Text

            self.notes.print(Text.assemble(("error: ", "bold red"), text), soft_wrap=True)
        else:
            self._say(f"error: {text}")


def _all_numbers(values: Sequence[Any]) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in values]
    return bool(numbers) and all(numbers)


def cell(value: Any) -> str:
    """Return a value as one line of text; None is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).replace("\n", " ")


def shortened(file: str | Path) -> str:
    """Return a file's path from the current directory, where it lies below it."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def problem_text(problem: Problem) -> str:
    """Return a problem as a line, and its hint as another, its file seen from here."""
    where = f"{shortened(problem.place.file)}:{problem.place.line}: " if problem.place else ""
    hint = f"\n    hint: {problem.hint}" if problem.hint else ""
    # A message may name the places of others.
    message = problem.message.replace(f"{Path.cwd()}/", "")
    return f"{where}{message} [{problem.code}]{hint}"


def indented(text: str) -> str:
    """Return the text with each of its lines moved in."""
    return "\n".join(f"  {line}" for line in text.splitlines())
