"""``penstock dev``: a whole application on one machine, supervised, with a live status."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.cli.arguments import add_app, command
from penstock.cli.moments import read_span
from penstock.cli.session import Session
from penstock.cli.stopping import stop_on_signals
from penstock.cli.supervision.devrun import DevRun
from penstock.cli.supervision.plan import Plan, make_plan
from penstock.cli.supervision.statusview import make_view
from penstock.cli.supervision.watch import find_watched
from penstock.core.graph.parts import ON_SPARK
from penstock.errors import ConfigurationError
from penstock.machine.locks import FileLock

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument(
        "--watch",
        metavar="NAME[:FIELD]",
        help="show the newest records of a stream, or the top of a table",
    )
    parser.add_argument(
        "--for", dest="span", type=read_span, metavar="60s", help="end the run after this time"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        default=[],
        metavar="PART",
        help="run only these parts",
    )
    parser.add_argument(
        "--with",
        dest="also",
        nargs="+",
        action="extend",
        default=[],
        metavar="PART",
        help="also run sources that read what is piped into this command",
    )
    command(parser, _dev)


def _dev(session: Session) -> int:
    arguments = session.arguments
    graph = session.application.graph
    share = session.loaded.settings.spark.share == "on"
    plan = make_plan(graph, only=arguments.only, also=arguments.also, share=share)
    watched = find_watched(graph, arguments.watch) if arguments.watch else None
    _refuse_terminal(plan, arguments.also)
    if any(unit.kind in ON_SPARK for unit in plan.units):
        session.prepare_spark()
    session.prepare_broker()
    with _alone(session), stop_on_signals() as stop:
        view = make_view(session.terminal)
        try:
            run = DevRun(session, plan, watched=watched, view=view, stop=stop)
            return run.run()
        finally:
            view.close()


def _refuse_terminal(plan: Plan, also: list[str]) -> None:
    """Refuse a part that would read the terminal from the background."""
    if also and sys.stdin.isatty():
        raise ConfigurationError(
            f"{', '.join(also)} cannot read this terminal while the status is shown on it",
            code="dev.terminal",
            detail=f"dev runs {len(plan.units)} processes in the background",
            hint=f"in another terminal: penstock run APP --part {also[0]}",
        )


@contextmanager
def _alone(session: Session) -> Iterator[None]:
    """Hold the lock that lets an application run once in a project; the kernel drops it."""
    app = session.application.graph.app
    lock = FileLock(session.places.home / "dev" / f"{app}.lock")
    if not lock.acquire():
        raise ConfigurationError(
            f"{app} is already running in {session.loaded.places.home}",
            code="dev.running",
            detail="two runs of one application would take partitions from each other",
            hint="stop the other run, or use another home: --set home=DIRECTORY",
        )
    with lock:
        yield
