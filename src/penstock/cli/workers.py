"""Several processes of the same services on one host: ``penstock run --workers N``."""

import queue
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from time import monotonic

from penstock.cli.session import Session
from penstock.cli.supervision.board import Board
from penstock.cli.supervision.partprocess import PartProcess
from penstock.cli.supervision.plan import Unit
from penstock.cli.supervision.supervisor import Backoff, Supervisor
from penstock.core.graph import Part, Service
from penstock.core.report import PartReport
from penstock.errors import ConfigurationError

__all__ = ["run_workers"]

_LOOK_SECONDS = 0.1
_GRACE = timedelta(seconds=10)
"""What the processes get beyond the services' own time to stop."""
_REPORTS_WAITING = 10_000


def run_workers(
    session: Session,
    parts: Sequence[Part],
    *,
    count: int,
    stop: threading.Event,
    report: Callable[[PartReport, str], None],
) -> None:
    """Run ``count`` processes of each service until ``stop`` is set; one that dies comes back.

    ``report`` gets what they say, with the name of the process. All end when this one does.
    """
    if others := [part.name for part in parts if not isinstance(part, Service)]:
        raise ConfigurationError(
            f"{', '.join(others)}: only services have workers",
            code="run.workers",
            hint="run other parts with a command of their own, without --workers",
        )
    units = [
        Unit(f"{part.name}-{number}", "service", (part.name,))
        for part in parts
        for number in range(1, count + 1)
    ]
    reports: queue.Queue[tuple[PartReport, str]] = queue.Queue(_REPORTS_WAITING)

    def start(unit: Unit) -> PartProcess:
        return PartProcess.start(
            unit, session=session, take=lambda found: reports.put((found, unit.name))
        )

    dev = session.loaded.settings.dev
    supervisor = Supervisor(
        units,
        start=start,
        board=Board([(part.name, part.kind) for part in parts], clock=monotonic),
        note=session.terminal.note,
        backoff=lambda: Backoff(first=dev.restart_backoff, longest=dev.restart_backoff_max),
    )

    def pass_on() -> None:
        while not reports.empty():
            report(*reports.get_nowait())

    try:
        while not stop.wait(_LOOK_SECONDS) and not supervisor.all_ended:
            supervisor.look()
            pass_on()
        grace = session.loaded.settings.services.stop_timeout + _GRACE
        supervisor.stop(["service"], grace=grace, tick=pass_on)
    finally:
        supervisor.kill()
        pass_on()
