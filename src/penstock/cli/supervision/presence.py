"""Make a run known: serve a page with its status, and register it so that others find it."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.console.console import ConsolePage
from penstock.cli.console.log import LogWatcher
from penstock.cli.console.look import Look, keyed
from penstock.cli.console.reach import Reach, broker_directory, console_link, new_key
from penstock.cli.session import Session
from penstock.cli.status.page import StatusPage
from penstock.cli.supervision.board import Board
from penstock.core.status.status import RunStatus
from penstock.machine.peers.secret import shared_secret
from penstock.machine.ports import keep_port, kept_port
from penstock.machine.process.registry import Registry, RunEntry
from penstock.serving.desk.offers import Offers

if TYPE_CHECKING:
    from penstock.backbone.client.connection import Connection

__all__ = ["Presence", "announce_run"]


class Presence:
    """What a run that is known tells of itself further."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self.console: ConsolePage | None = None
        self.broker: Callable[[], str] = lambda: ""
        """Says how the log is."""
        self.connection: Connection | None = None

    def note(self, text: str) -> None:
        """Say something, also in the console."""
        self._note(text)
        if self.console is not None:
            self.console.tell(text)


@contextmanager
def announce_run(
    session: Session, board: Board, *, command: str, note: Callable[[str], None]
) -> Iterator[Presence]:
    """Serve how the parts on the board are, and be found by ``penstock status``, for the block.

    ConfigurationError where the port that was set is taken; if another run of the project has it,
    this one takes one that is free. A project in which nothing can be written is no reason not to
    run: that it will not be found is said.
    """
    app, started_at = session.application.graph.app, datetime.now(UTC)
    presence = Presence(note)

    def status() -> RunStatus:
        return RunStatus(
            app=app, command=command, pid=os.getpid(), started_at=started_at, parts=board.rows()
        )

    with ExitStack() as stack:
        http, registry = session.loaded.settings.http, Registry(session.places.runs)
        port, hosts = http.port, [host.strip() for host in http.hosts.split(",") if host.strip()]
        beside = port != 0 and port in {entry.port for entry in registry.entries()}
        key = new_key(http)
        console = stack.enter_context(_console(session, presence, status, key=key))
        presence.console = console
        kept = session.places.home / "console" / f"{app}.port"
        page = stack.enter_context(
            StatusPage(
                status,
                port=0 if beside else port,
                wished=kept_port(kept),
                hosts=hosts,
                note=note,
                more=console.offers if http.shows_console else Offers(),
            )
        )
        entry = RunEntry(
            app=app, command=command, pid=os.getpid(), port=page.port, started_at=started_at
        )
        try:
            stack.enter_context(registry.entered(entry))
        except OSError as error:
            note(f"penstock status cannot find this run: {error}")
        if command == "dev":
            keep_port(kept, page.port)
        if http.shows_console and (command == "dev" or key):
            note(f"the console is on {console_link(page.address, key)}")
        if port:
            why = f" ({port} is in use by another run)" if beside else ""
            note(f"metrics, health and status on {page.address}{why}")
        yield presence


def _console(
    session: Session, presence: Presence, status: Callable[[], RunStatus], *, key: str
) -> ConsolePage:
    """Return the console of a run."""
    run = status()

    def look() -> Look:
        run = status()
        return Look(time.time(), [run], keyed([run], several=False), broker=presence.broker())

    def logs() -> dict[str, Path]:
        # What another command runs writes elsewhere.
        names = {row.process for row in status().parts} if run.command == "dev" else ()
        return {name: session.loaded.places.logs / f"{name}.log" for name in names}

    return ConsolePage(
        look,
        app=run.app,
        command=run.command,
        reach=Reach(
            log=LogWatcher(lambda: presence.connection, directory=broker_directory(session.loaded)),
            graph=lambda: session.application.graph,
            secret=lambda: shared_secret(session.loaded.settings.serving, session.places.home),
            serving=session.loaded.settings.serving,
        ),
        logs=logs,
        settings=lambda: session.loaded.configuration.resolved,
        key=key,
    )
