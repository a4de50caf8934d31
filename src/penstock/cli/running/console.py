"""``penstock console``: the page that shows what runs in this project, and the log it runs on."""

import argparse
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from penstock.cli.arguments import add_app, command
from penstock.cli.console.console import ConsolePage
from penstock.cli.console.log import LogWatcher
from penstock.cli.console.look import Look, keyed
from penstock.cli.console.reach import Reach, broker_directory, console_link, new_key
from penstock.cli.session import Session
from penstock.cli.status.overview import look
from penstock.cli.status.page import StatusPage
from penstock.cli.status.remote import ask_runs, read_run_address
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
    parser.add_argument(
        "--run",
        dest="addresses",
        action="append",
        type=read_run_address,
        default=[],
        metavar="URL",
        help="also show the run whose status page is at this address; may be given several times",
    )
    command(parser, _console)


def _console(session: Session) -> int:
    began_at = datetime.now(UTC)
    graph: Graph = session.application.graph
    registry = Registry(session.places.runs)
    kept = session.places.home / "console" / "console.port"

    def seen() -> Look:
        return _seen(graph.app, registry, session.arguments.addresses)

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


def _seen(app: str, registry: Registry, addresses: Sequence[str]) -> Look:
    """Return what runs of an application here, and at the addresses of other machines."""
    at, found = time.time(), look(registry).of(app)
    others = ask_runs(addresses)
    far = {name: run for name, run in others.items() if isinstance(run, RunStatus)}
    silent = [
        f"penstock {each.entry.command} (process {each.entry.pid}) does not answer: {each.why}"
        for each in found.unanswered
    ] + [
        f"the run at {name} does not answer: {why}"
        for name, why in others.items()
        if isinstance(why, str)
    ]
    parts = keyed(found.runs, several=True)
    for name, run in far.items():
        # Processes of several machines may have the same number.
        place = name.partition("://")[2]
        parts |= {f"{part.key}@{place}": part for part in run.parts}
    return Look(at, [*found.runs, *far.values()], parts, silent=silent)
