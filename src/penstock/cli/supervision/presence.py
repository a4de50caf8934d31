"""Make a run known: serve a page with its status, and register it so that others find it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from penstock.cli.session import Session
from penstock.cli.status.page import StatusPage
from penstock.cli.supervision.board import Board
from penstock.core.status.status import RunStatus
from penstock.machine.process.registry import Entry, Registry

__all__ = ["announce_run"]


@contextmanager
def announce_run(
    session: Session, board: Board, *, command: str, note: Callable[[str], None]
) -> Iterator[None]:
    """Serve how the parts on the board are, and be found by ``penstock status``, for the block.

    ConfigurationError where the port that was set is taken; if another run of the project has it,
    this one takes one that is free. A project in which nothing can be written is no reason not to
    run: that it will not be found is said.
    """
    app, started_at = session.application.graph.app, datetime.now(UTC)

    def status() -> RunStatus:
        return RunStatus(
            app=app, command=command, pid=os.getpid(), started_at=started_at, parts=board.rows()
        )

    with ExitStack() as stack:
        http, registry = session.loaded.settings.http, Registry(session.places.runs)
        port, hosts = http.port, [host.strip() for host in http.hosts.split(",") if host.strip()]
        beside = port != 0 and port in {entry.port for entry in registry.entries()}
        page = stack.enter_context(
            StatusPage(status, port=0 if beside else port, hosts=hosts, note=note)
        )
        entry = Entry(
            app=app, command=command, pid=os.getpid(), port=page.port, started_at=started_at
        )
        try:
            stack.enter_context(registry.entered(entry))
        except OSError as error:
            note(f"penstock status cannot find this run: {error}")
        if port:
            why = f" ({port} is in use by another run)" if beside else ""
            note(f"metrics, health and status on {page.address}{why}")
        yield
