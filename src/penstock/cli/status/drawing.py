"""The status of a project as it is drawn on a terminal: a table for each run, facts below."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from penstock.cli.screen.partlines import count_text, rate_text
from penstock.cli.screen.terminal import cell
from penstock.cli.status.overview import Overview
from penstock.cli.status.table import run_line
from penstock.core.graph.parts import ON_SPARK
from penstock.core.status.status import PartStatus
from penstock.core.units import span_text

__all__ = ["STYLES", "drawn"]

STYLES = {
    "running": "green",
    "starting": "cyan",
    "stopping": "cyan",
    "degraded": "yellow",
    "restarting": "bold red",
    "failed": "bold red",
}
"""The styles of states on a terminal."""


def drawn(overview: Overview, now: datetime, *, troubles: bool) -> Any:
    """Return everything, ready to be printed; perhaps with what is not well once more, last."""
    from rich.console import Group
    from rich.text import Text

    if overview.empty:
        return Text("nothing runs", style="dim")
    found: list[Any] = []
    for run in overview.runs:
        line = Text(cell(run_line(run, now)), style="dim")
        line.stylize("bold not dim", 0, len(cell(run.app)))
        found += [line, _parts(run.parts), Text(), _facts(run.parts), Text()]
    if troubles:
        found += [Text(cell(trouble), style="yellow") for trouble in overview.troubles()]
    return Group(*found)


def _parts(parts: Sequence[PartStatus]) -> Any:
    from rich.text import Text

    table = _table()
    for name in ("part", "state"):
        table.add_column(name, no_wrap=True)
    # What is nowhere to be seen needs no column.
    extras = {
        "lag": [part.lag for part in parts],
        "dead": [part.counts.dead_lettered or None for part in parts],
        "restarts": [part.restarts or None for part in parts],
    }
    extras = {name: values for name, values in extras.items() if any(v is not None for v in values)}
    for name in ("since", "in", "", "out", "", *extras):
        table.add_column(name, justify="right", no_wrap=True)
    for index, part in enumerate(parts):
        table.add_row(
            _name(part),
            Text(cell(part.state), style=STYLES.get(part.state, "dim")),
            span_text(part.since_seconds),
            count_text(part.counts.received),
            rate_text(part.rate_in),
            count_text(part.counts.written),
            rate_text(part.rate_out),
            *(_count(values[index]) for values in extras.values()),
        )
    return table


def _facts(parts: Sequence[PartStatus]) -> Any:
    table = _table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for part in parts:
        for row in _fact_rows(part):
            table.add_row(*row)
    return table


def _fact_rows(part: PartStatus) -> Iterator[tuple[str, str, str]]:
    name = _name(part)
    for fact, value in part.detail.items():
        yield name, cell(fact), cell(value)
        name = ""


def _table(*, show_header: bool = True) -> Any:
    from rich.table import Table

    return Table(box=None, header_style="bold", padding=(0, 2, 0, 0), show_header=show_header)


def _name(part: PartStatus) -> str:
    alone = part.process in ("0", part.part) or part.kind in ON_SPARK
    return cell(part.part if alone else part.process)


def _count(value: int | None) -> str:
    return "" if value is None else count_text(value)
