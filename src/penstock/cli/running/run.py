"""``penstock run``: parts of an application in this process, which is how a cluster runs them."""

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext

from penstock.cli.arguments import add_app, command
from penstock.cli.screen.logformat import PrintableFormatter
from penstock.cli.screen.partlines import PartLines
from penstock.cli.session import Session
from penstock.cli.stopping import end_now, stop_on_signals
from penstock.cli.supervision.board import Board
from penstock.cli.supervision.presence import Presence, announce_run
from penstock.core.graph.parts import ON_SPARK
from penstock.core.status.report import PartReport, encode_report
from penstock.errors import StuckError
from penstock.machine.process.garbage import collect_rarely
from penstock.machine.process.lifeline import watch_lifeline

__all__ = ["MAX_WORKERS", "register"]

MAX_WORKERS = 64
"""The most processes of a service on one host."""

_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    parser.add_argument(
        "--part", action="append", required=True, metavar="NAME", help="a part to run (repeatable)"
    )
    parser.add_argument(
        "--workers", type=_workers, default=1, metavar="N", help="run N processes of each service"
    )
    parser.add_argument(
        "--report-json",
        action="store_true",
        help="write a line of JSON to standard output for each report",
    )
    parser.set_defaults(also=[])
    command(parser, _run)


def _workers(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= MAX_WORKERS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_WORKERS}")


def _run(session: Session) -> int:
    try:
        return _run_until_stopped(session)
    except KeyboardInterrupt:
        end_now()
    except StuckError as error:
        session.terminal.error(error)
        end_now(1)


def _run_until_stopped(session: Session) -> int:
    from penstock.backbone.declare import declare_application
    from penstock.backbone.site import Site
    from penstock.cli.engines import run_parts
    from penstock.cli.running.workers import plan_workers, run_workers
    from penstock.core.wiring.lookup import find_parts

    with stop_on_signals() as stop:
        # Before anything of the user's is loaded: whoever supervises may be gone at any time.
        watch_lifeline(stop.event.set)
        graph = session.application.graph
        _log(in_detail=session.arguments.report_json)
        parts = find_parts(graph, session.arguments.part)
        if any(part.kind in ON_SPARK for part in parts):
            session.prepare_spark()
        units = plan_workers(parts, session.arguments.workers)
        board = Board(units, clock=time.monotonic)
        with _reporting(session, stop.event) as report, _known(session, board) as known:

            def take(found: PartReport, process: str = "") -> None:
                board.take(found, process=process or units[0].name)
                report(found, process)

            # One that reports to somebody else leaves the broker to them.
            alone = not session.arguments.report_json
            with session.guarded() if alone else session.connected() as connection:
                declare_application(graph, connection)
                if known is not None:
                    known.connection = connection
                if session.arguments.workers > 1:
                    run_workers(session, units, board=board, stop=stop.event, report=take)
                else:
                    site = Site(
                        settings=session.loaded.settings,
                        places=session.loaded.places,
                        connection=connection,
                        stop=stop.event,
                        report=take,
                    )
                    collect_rarely()
                    run_parts(graph, parts, site)
        return stop.exit_code


def _known(session: Session, board: Board) -> AbstractContextManager[Presence | None]:
    """Make the run known, unless it reports to somebody who does and no port was asked for."""
    if session.arguments.report_json and not session.loaded.settings.http.port:
        return nullcontext()
    return announce_run(session, board, command="run", note=session.terminal.note)


def _log(*, in_detail: bool) -> None:
    """Write the log to standard error: in detail for a file, what matters for a person."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter(_LOG_FORMAT))
    level = logging.INFO if in_detail else logging.WARNING
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("py4j").setLevel(logging.WARNING)
    if not in_detail:
        # The client warns of what it mends itself; what stays broken is in the reports.
        logging.getLogger("penstock.kafka").setLevel(logging.ERROR)


@contextmanager
def _reporting(
    session: Session, stop: threading.Event
) -> Iterator[Callable[[PartReport, str], None]]:
    """Give what takes the reports: lines for people, or JSON on standard output."""
    if not session.arguments.report_json:
        yield PartLines(session.terminal.note, clock=time.monotonic).take
        return
    with closing(_JsonReports(stop)) as reports:
        yield reports.write


class _JsonReports:
    """Takes standard output for the reports alone; what the application prints goes to stderr."""

    def __init__(self, stop: threading.Event) -> None:
        sys.stdout.flush()
        self._file: int | None = os.dup(sys.stdout.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        self._stop = stop
        self._lock = threading.Lock()

    def write(self, report: PartReport, _process: str) -> None:
        """Write one line, from any thread; where nobody reads any more, stop."""
        with self._lock:
            try:
                if self._file is not None:
                    os.write(self._file, encode_report(report) + b"\n")
            except BrokenPipeError:
                self._stop.set()

    def close(self) -> None:
        """Stop writing; a thread that outlives the run must not write to another file."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
