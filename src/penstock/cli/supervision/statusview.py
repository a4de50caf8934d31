"""The display of ``penstock dev``: a live table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Sequence
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

__all__ = ["LiveView", "PlainView", "Status", "StatusView", "make_view"]

_SUMMARY_SECONDS = 5.0
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
        drawn: list[Any] = [Text(), broker, _table(status.rows)]
        if status.watched:
            drawn += [Text(), _values(status)]
        drawn += [Text(cell(status.hint), style="dim")]
        self._live.update(Group(*drawn), refresh=True)

    def close(self) -> None:
        """Take the table away."""
        self._live.stop()


def _table(rows: Sequence[PartStatus]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("part", "kind", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("in", "out", "lag", "dead", "restarts", "since"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what", overflow="ellipsis", no_wrap=True, ratio=1)
    for row in rows:
        dead, restarts = row.counts.dead_lettered, row.restarts
        table.add_row(
            cell(row.part),
            cell(row.kind),
            Text(cell(row.state), style=STYLES.get(row.state, "dim")),
            rate_text(row.rate_in) if row.healthy else "",
            rate_text(row.rate_out) if row.healthy else "",
            "" if row.lag is None else count_text(row.lag),
            Text(count_text(dead), style="yellow" if dead else "dim"),
            Text(str(restarts), style="yellow" if restarts else "dim"),
            span_text(row.since_seconds),
            Text(cell(row.reason or brief_text(row.detail)), style="" if row.healthy else "yellow"),
        )
    return table


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
