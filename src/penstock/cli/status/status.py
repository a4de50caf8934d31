"""``penstock status``: show the parts that run in this project."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from time import sleep
from typing import Any

from penstock.cli.arguments import add_json, command
from penstock.cli.screen.terminal import Terminal, shortened
from penstock.cli.session import Session
from penstock.cli.status.drawing import drawn
from penstock.cli.status.overview import Overview, look
from penstock.cli.status.table import FACT_COLUMNS, PART_COLUMNS, fact_rows, part_rows, run_line
from penstock.machine.process.registry import Registry

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "app",
        metavar="APP",
        nargs="?",
        help="one application: its name, or the file that declares it",
    )
    parser.add_argument("--watch", action="store_true", help="update the output continuously")
    add_json(parser)
    command(parser, _status)


def _status(session: Session) -> int:
    if not session.arguments.watch:
        overview = _look(session)
        _show(session, overview)
        return _verdict(session, overview)
    interval = session.loaded.settings.dev.status_interval.total_seconds()
    with _screen(session.terminal, in_place=not session.arguments.json) as screen:
        while True:
            overview = _look(session)
            if screen is None:
                _show(session, overview)
            else:
                screen.update(drawn(overview, datetime.now(UTC), troubles=True), refresh=True)
            sleep(interval)


def _look(session: Session) -> Overview:
    overview = look(Registry(session.loaded.places.runs))
    wanted = session.arguments.app
    if wanted is None or overview.empty:
        return overview
    found = overview.of(wanted)
    # What is no name of anything that runs is a file, a directory or a module.
    return overview.of(session.application.graph.app) if found.empty else found


def _show(session: Session, overview: Overview) -> None:
    terminal = session.terminal
    if session.arguments.json:
        write = terminal.json_line if session.arguments.watch else terminal.json
        write(overview.document())
        return
    if terminal.draws and overview.runs:
        terminal.console.print(drawn(overview, datetime.now(UTC), troubles=False))
    elif overview.runs:
        for run in overview.runs:
            terminal.note(run_line(run, datetime.now(UTC)))
        terminal.table(PART_COLUMNS, part_rows(overview))
        terminal.line("")
        terminal.table(FACT_COLUMNS, fact_rows(overview))


def _verdict(session: Session, overview: Overview) -> int:
    """Report what is not well; return the exit code."""
    terminal = session.terminal
    if overview.empty:
        app = session.arguments.app
        what = f"{app!r} is not running" if app else "nothing runs"
        terminal.failure(f"{what} in {shortened(session.loaded.places.home)}")
        terminal.note(
            "  hint: penstock dev; for another project: penstock status --set home=DIRECTORY"
        )
    for trouble in overview.troubles():
        terminal.failure(trouble)
    return 0 if overview.healthy else 1


@contextmanager
def _screen(terminal: Terminal, *, in_place: bool) -> Iterator[Any]:
    """Give what draws in one place, None where there is no terminal to draw on."""
    if not terminal.draws or not in_place:
        yield None
        return
    from rich.live import Live

    with Live(console=terminal.console, auto_refresh=False) as live:
        yield live
