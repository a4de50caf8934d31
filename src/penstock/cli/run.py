"""``penstock run``: parts of an application in this process, which is how a cluster runs them."""

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.cli.arguments import add_app, command
from penstock.cli.partlines import PartLines
from penstock.cli.session import Session
from penstock.cli.stopping import stop_on_signals
from penstock.core.graph import Graph
from penstock.core.report import PartReport, encode_report
from penstock.machine.lifeline import watch_lifeline

if TYPE_CHECKING:
    from penstock.cli.load import Application

__all__ = ["register"]

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument(
        "--part", action="append", required=True, metavar="NAME", help="a part (repeatable)"
    )
    parser.add_argument(
        "--report-json", action="store_true", help="a line of JSON for each report, on stdout"
    )
    command(parser, _run)


def _run(session: Session) -> int:
    with stop_on_signals() as stop:
        # Before anything of the user's is loaded: whoever supervises may be gone at any time.
        watch_lifeline(stop.event.set)
        application = session.application
        _log(in_detail=session.arguments.report_json)
        _importable_elsewhere(application)
        with _reporting(session, stop.event) as report:
            _run_parts(session, application.graph, stop.event, report)
        return stop.exit_code


def _run_parts(
    session: Session,
    graph: Graph,
    stop: threading.Event,
    report: Callable[[PartReport], None],
) -> None:
    from penstock.backbone.declare import declare_application
    from penstock.backbone.site import Site
    from penstock.cli.engines import find_parts, run_parts

    parts = find_parts(graph, session.arguments.part)
    loaded = session.loaded
    with session.connected() as connection:
        declare_application(graph, connection)
        site = Site(
            settings=loaded.settings,
            places=loaded.places,
            connection=connection,
            stop=stop,
            report=report,
        )
        run_parts(graph, parts, site)


def _log(*, in_detail: bool) -> None:
    """Write the log to standard error: in detail for a file, what matters for a person."""
    logging.basicConfig(level=logging.INFO if in_detail else logging.WARNING, format=_LOG_FORMAT)
    if not in_detail:
        # The client warns of what it mends itself; what stays broken is in the reports.
        logging.getLogger("penstock.kafka").setLevel(logging.ERROR)


def _importable_elsewhere(application: "Application") -> None:
    """Let the processes that are started from here, as Spark's workers, import the application."""
    before = os.environ.get("PYTHONPATH", "")
    paths = [str(application.root), *(before.split(os.pathsep) if before else [])]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


@contextmanager
def _reporting(session: Session, stop: threading.Event) -> Iterator[Callable[[PartReport], None]]:
    """Give what takes the reports: lines for people, or JSON on standard output."""
    if not session.arguments.report_json:
        lines = PartLines(session.terminal.note, clock=time.monotonic)
        yield lines.take
        return
    # What the application prints must not stand between the reports: it goes where errors go.
    sys.stdout.flush()
    reports = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lock = threading.Lock()

    def write(report: PartReport) -> None:
        with lock:
            try:
                os.write(reports, encode_report(report) + b"\n")
            except BrokenPipeError:
                stop.set()  # whoever supervised this process is gone

    try:
        yield write
    finally:
        os.close(reports)
