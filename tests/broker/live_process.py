"""The parts of an application with live queries, in a process of its own that can be killed.

``python live_process.py BOOTSTRAP APP ROWS PARTITIONS PORT`` runs a gateway on a port, or, where that is 0,
the services; until SIGTERM.
"""

import faulthandler
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from penstock import App
from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.core.graph.parts import Service
from penstock.core.rules.check import verified
from penstock.core.settings.settings import (
    KafkaSettings,
    ServiceSettings,
    ServingSettings,
    Settings,
)
from penstock.errors import PenstockError
from penstock.machine.places import Places
from penstock.services.engine import run_services
from penstock.serving.engine import run_gateway

if __package__:
    from .live_site import Todo
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.broker.live_site import Todo


def declare(name: str, *, rows: int, partitions: int) -> App:
    app = App(name)
    todos = app.table(f"{name}.todos", Todo, partitions=partitions)
    live = app.live_queries(f"{name}.live", todos, rows=rows)
    app.gateway("door", live=live)
    return app


class LiveProcess:
    """One process, started again whenever it has been killed."""

    def __init__(self, *words: str, home: Path) -> None:
        self._words = words
        self._home = home
        self._log = home / f"process-{words[-1]}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, __file__, *self._words]
            self._process = subprocess.Popen(command, cwd=self._home, stdout=log, stderr=log)

    def ensure(self) -> None:
        """Start it again if it has ended by itself, as a supervisor does."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def said(self) -> str:
        """Return the end of what it wrote, with where its threads are now."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGUSR1)
            threading.Event().wait(1)  # for a person who reads why a test failed
        return self._log.read_text(errors="replace")[-20_000:]

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)


def main(bootstrap: str, name: str, rows: str, partitions: str, port: str) -> None:
    graph = verified(declare(name, rows=int(rows), partitions=int(partitions)).graph)
    faulthandler.register(signal.SIGUSR1)
    stop = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.set())
    kafka = KafkaSettings(request_timeout=timedelta(seconds=15))
    settings = Settings(
        kafka=kafka,
        services=ServiceSettings(
            session_timeout=timedelta(seconds=3),
            transaction_timeout=timedelta(seconds=10),
            commit_interval=timedelta(milliseconds=20),
        ),
        serving=ServingSettings(port=int(port), heartbeat=timedelta(seconds=1)),
    )
    site = Site(
        settings=settings,
        places=Places(Path.cwd()),
        connection=Connection(bootstrap, kafka),
        stop=stop,
        report=lambda _: None,
    )
    names = [part.name for part in graph.parts if isinstance(part, Service)]

    def run() -> Any:
        if int(port):
            return run_gateway(graph, "door", site)
        return run_services(graph, names, site)

    while not stop.is_set():
        try:
            run()
        except PenstockError as error:  # as a supervisor does
            sys.stderr.write(f"{error}\n")
            stop.wait(0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
