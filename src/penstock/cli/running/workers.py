"""Several processes of the same services on one host: ``penstock run --workers N``."""

import queue
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

from penstock.cli.session import Session
from penstock.cli.supervision.board import Board
from penstock.cli.supervision.partprocess import PartProcess
from penstock.cli.supervision.plan import Unit
from penstock.cli.supervision.supervisor import Supervisor
from penstock.core.backoff import Backoff
from penstock.core.graph.parts import Part, Service
from penstock.core.status.report import PartReport
from penstock.errors import ConfigurationError

__all__ = ["plan_workers", "run_workers"]

_LOOK_SECONDS = 0.1
_GRACE = timedelta(seconds=10)
"""Extra time for the processes to stop, beyond that of the services."""
_REPORTS_WAITING = 10_000


def plan_workers(parts: Sequence[Part], count: int) -> list[Unit]:
    """Return the processes of services, ``count`` of each; one process, 0, is this one itself.

    ConfigurationError where something else than a service is to have several.
    """
    if count == 1:
        return [Unit("0", parts[0].kind, tuple(part.name for part in parts))]
    if others := [part.name for part in parts if not isinstance(part, Service)]:
        raise ConfigurationError(
            f"{', '.join(others)}: only services have workers",
            code="run.workers",
            hint="run the other parts with a separate command, without --workers",
        )
    return [
        Unit(f"{part.name}-{number}", "service", (part.name,))
        for part in parts
        for number in range(1, count + 1)
    ]


def run_workers(
    session: Session,
    units: Sequence[Unit],
    *,
    board: Board,
    stop: threading.Event,
    report: Callable[[PartReport, str], None],
) -> None:
    """Run the processes until ``stop`` is set; one that dies comes back.

    ``report`` gets what they say, with the name of the process. All end when this one does.
    """
    reports: queue.Queue[tuple[PartReport, str]] = queue.Queue(_REPORTS_WAITING)

    def start(unit: Unit) -> PartProcess:
        return PartProcess.start(
            unit, session=session, take=lambda found: reports.put((found, unit.name))
        )

    dev = session.loaded.settings.dev
    supervisor = Supervisor(
        units,
        start=start,
        board=board,
        note=session.terminal.note,
        backoff=Backoff(dev.restart_backoff, dev.restart_backoff_max),
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
