"""The display of ``penstock dev``: a live table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from penstock.cli.screen.partlines import brief_text, count_text, part_line, rate_text
from penstock.cli.screen.terminal import Terminal, cell
from penstock.cli.status.drawing import STYLES
from penstock.core.printable import printable
from penstock.core.status.report import PartReport
from penstock.core.status.status import PartStatus
from penstock.core.units import span_text

__all__ = ["LiveView", "PlainView", "Status", "StatusView", "fitting", "make_view"]

_SUMMARY_SECONDS = 5.0
_GAP = 2
_WHAT = "what"
_LEAST_WHAT = 6
"""A description that is cut shorter says nothing."""
_NUMBERS = frozenset({"in", "out", "lag", "dead", "restarts", "since"})
_VALUE_CHARACTERS = 200
"""The most characters of a watched value: the table is redrawn every second."""


@dataclass(frozen=True, slots=True)
class Status:
    """All there is to show at one moment."""

    app: str
    broker: str
    rows: Sequence[PartStatus]
    watched: str = ""
    values: Sequence[dict[str, Any]] = ()
    hint: str = ""


class StatusView(Protocol):
    """Where the status goes."""

    def note(self, text: str) -> None:
        """Say that something happened."""

    def changed(self, report: PartReport) -> None:
        """Say that a part's state changed."""

    def show(self, status: Status) -> None:
        """Show how things are now."""

    def close(self) -> None:
        """Stop showing."""


def make_view(terminal: Terminal) -> StatusView:
    """Return the view that fits where messages go."""
    return LiveView(terminal) if terminal.draws_notes else PlainView(terminal)


class PlainView:
    """One line for each change, a summary every few seconds; watched values go to stdout."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._due = 0.0
        self._values: Sequence[dict[str, Any]] = ()

    def note(self, text: str) -> None:
        """Write a line with the time of day."""
        self._terminal.note(f"{datetime.now().astimezone():%H:%M:%S} {text}")

    def changed(self, report: PartReport) -> None:
        """Write the part's line."""
        self.note(part_line(report))

    def show(self, status: Status) -> None:
        """Write the summary where it is due."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _SUMMARY_SECONDS
        self.note(summary(status))
        if status.watched and list(status.values) != list(self._values):
            self._values = list(status.values)
            for value in status.values:
                self._terminal.row((status.watched, *value.values()))

    def close(self) -> None:
        """Write nothing more."""


class LiveView:
    """A table that is drawn over and over; what happened scrolls by above it."""

    def __init__(self, terminal: Terminal) -> None:
        from rich.live import Live

        self._console = terminal.notes
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def note(self, text: str) -> None:
        """Print a line above the table."""
        now = f"{datetime.now().astimezone():%H:%M:%S}"
        self._console.print(f"{now} {printable(text)}", style="dim", soft_wrap=True)

    def changed(self, report: PartReport) -> None:
        """Do nothing: the table shows it."""

    def show(self, status: Status) -> None:
        """Draw the table."""
        from rich.console import Group
        from rich.text import Text

        broker = Text.assemble((cell(status.app), "bold"), "  ", (cell(status.broker), "dim"))
        drawn: list[Any] = [Text(), broker, _table(status.rows, width=self._console.width)]
        if status.watched:
            drawn += [Text(), _values(status)]
        drawn += [Text(cell(status.hint), style="dim")]
        self._live.update(Group(*drawn), refresh=True)

    def close(self) -> None:
        """Take the table away."""
        self._live.stop()


def _table(rows: Sequence[PartStatus], *, width: int) -> Any:
    """Return the parts as a table of at most this width; numbers are whole, or not there at all."""
    from rich.table import Table
    from rich.text import Text

    columns = {name: [Text(text, style) for text, style in made] for name, made in _cells(rows)}
    widths = {
        name: max(len(name), *(each.cell_len for each in made)) for name, made in columns.items()
    }
    shown = fitting(widths, width)
    table = Table(box=None, header_style="bold", padding=(0, _GAP, 0, 0))
    for name in shown:
        table.add_column(
            name,
            justify="right" if name in _NUMBERS else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=shown[name],
        )
    for cells in zip(*(columns[name] for name in shown), strict=True):
        table.add_row(*cells)
    return table


def _cells(rows: Sequence[PartStatus]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each column with its cells and their styles, the most important column first."""
    yield "part", [(cell(row.part), "") for row in rows]
    yield "state", [(cell(row.state), STYLES.get(row.state, "dim")) for row in rows]
    yield "in", [(rate_text(row.rate_in) if row.healthy else "", "") for row in rows]
    yield "out", [(rate_text(row.rate_out) if row.healthy else "", "") for row in rows]
    yield "lag", [("" if row.lag is None else count_text(row.lag), "") for row in rows]
    yield "dead", [_warned(row.counts.dead_lettered) for row in rows]
    yield "restarts", [_warned(row.restarts) for row in rows]
    yield "since", [(span_text(row.since_seconds), "") for row in rows]
    yield "kind", [(cell(row.kind), "dim") for row in rows]
    words = [(row.reason or brief_text(row.detail), row.healthy) for row in rows]
    yield _WHAT, [(cell(text), "" if well else "yellow") for text, well in words]


def _warned(count: int) -> tuple[str, str]:
    return count_text(count), "yellow" if count else "dim"


def fitting(widths: Mapping[str, int], room: int) -> dict[str, int]:
    """Return the columns that are shown, and how wide: what comes last is cut, or left out.

    >>> fitting({"part": 5, "state": 7, "lag": 3, "what": 40}, 30)
    {'part': 5, 'state': 7, 'lag': 3, 'what': 7}
    >>> fitting({"part": 5, "state": 7, "lag": 3, "what": 40}, 22)
    {'part': 5, 'state': 7, 'lag': 3}
    >>> fitting({"part": 30, "state": 7}, 22)
    {'part': 11, 'state': 7}
    """
    shown: dict[str, int] = {}
    for name, wanted in widths.items():
        left = room - sum(shown.values()) - _GAP * (len(shown) + 1)
        if name == _WHAT:
            wanted = min(wanted, left)  # noqa: PLW2901 - it is cut
        if wanted > left or (name == _WHAT and wanted < min(widths[name], _LEAST_WHAT)):
            break
        shown[name] = wanted
    if len(shown) > 1 or len(widths) == 1:
        return shown
    # One name is longer than the screen has room for, beside a state: that is cut.
    first, second = [*widths][:2]
    beside = widths[second] + 2 * _GAP
    return {first: max(1, room - beside), second: widths[second]}


def _values(status: Status) -> Any:
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    names = list(status.values[0]) if status.values else []
    table.add_column(cell(status.watched), style="bold cyan")
    for name in names:
        numeric = all(isinstance(value.get(name), int | float) for value in status.values)
        table.add_column(cell(name), justify="right" if numeric else "left")
    for value in status.values:
        table.add_row("", *(cell(value.get(name), most=_VALUE_CHARACTERS) for name in names))
    return table


def summary(status: Status) -> str:
    """Return the status as one line."""
    rows = status.rows
    running = sum(row.state == "running" for row in rows)
    words = [f"{running} of {len(rows)} parts running"]
    words += [f"{row.part} {row.state}" for row in rows if not row.healthy]
    words.append(f"in {rate_text(sum(row.rate_in for row in rows))}")
    words.append(f"out {rate_text(sum(row.rate_out for row in rows))}")
    words.append(f"lag {count_text(sum(row.lag or 0 for row in rows))}")
    words.append(f"dead letters {count_text(sum(row.counts.dead_lettered for row in rows))}")
    if restarts := sum(row.restarts for row in rows):
        words.append(f"restarts {restarts}")
    return ", ".join(words)
