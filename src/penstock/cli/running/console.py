"""``penstock console``: the page that shows what runs in this project, and the log it runs on."""

import argparse
import os
import time
from datetime import UTC, datetime

from penstock.cli.arguments import add_app, command
from penstock.cli.console.console import ConsolePage
from penstock.cli.console.log import LogWatcher
from penstock.cli.console.look import Look, keyed
from penstock.cli.console.reach import Reach, broker_directory, console_link, new_key
from penstock.cli.session import Session
from penstock.cli.status.overview import look
from penstock.cli.status.page import StatusPage
from penstock.cli.stopping import stop_on_signals
from penstock.core.graph.graph import Graph
from penstock.core.status.status import RunStatus
from penstock.machine.peers.secret import shared_secret
from penstock.machine.ports import keep_port, kept_port
from penstock.machine.process.registry import Registry

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_app(parser)
    command(parser, _console)


def _console(session: Session) -> int:
    began_at = datetime.now(UTC)
    graph: Graph = session.application.graph
    registry = Registry(session.places.runs)
    kept = session.places.home / "console" / "console.port"

    def seen() -> Look:
        at, found = time.time(), look(registry).of(graph.app)
        silent = [
            f"penstock {each.entry.command} (process {each.entry.pid}) does not answer: {each.why}"
            for each in found.unanswered
        ]
        return Look(at, found.runs, keyed(found.runs, several=True), silent=silent)

    def status() -> RunStatus:
        runs = look(registry).of(graph.app).runs
        return RunStatus(
            app=graph.app,
            command="console",
            pid=os.getpid(),
            started_at=min((run.started_at for run in runs), default=began_at),
            parts=tuple(part for run in runs for part in run.parts),
        )

    http = session.loaded.settings.http
    hosts = [host.strip() for host in http.hosts.split(",") if host.strip()]
    key = new_key(http)
    with stop_on_signals() as stop, session.connected() as connection:
        console = ConsolePage(
            seen,
            app=graph.app,
            command="console",
            reach=Reach(
                log=LogWatcher(lambda: connection, directory=broker_directory(session.loaded)),
                graph=lambda: graph,
                secret=lambda: shared_secret(session.loaded.settings.serving, session.places.home),
                serving=session.loaded.settings.serving,
            ),
            settings=lambda: session.loaded.configuration.resolved,
            key=key,
        )
        with (
            console,
            StatusPage(
                status,
                port=http.port,
                wished=kept_port(kept),
                hosts=hosts,
                note=session.terminal.note,
                more=console.offers,
            ) as page,
        ):
            keep_port(kept, page.port)
            link = console_link(page.address, key)
            session.terminal.note(f"the console of {graph.app} is on {link}")
            stop.event.wait()
        return stop.exit_code
