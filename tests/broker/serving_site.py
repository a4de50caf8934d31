"""A gateway in a thread of the test, and HTTP over real sockets."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph
from penstock.core.settings.settings import ServiceSettings, ServingSettings, Settings
from penstock.core.status.report import PartReport
from penstock.machine.places import Places

# Imported before any thread runs: where two threads parse at once, CPython 3.11 may fail.
from penstock.services.engine import run_services
from penstock.serving.engine import run_gateway

LIMIT_SECONDS = 60.0


def until(condition, what: str) -> Any:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {LIMIT_SECONDS:g}s: {what}"
        threading.Event().wait(0.05)
    return found


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]


@dataclass
class Door:
    """A running gateway as its callers see it."""

    port: int
    reports: list[PartReport] = field(default_factory=list)
    token: str = ""
    readings: str = ""
    notes: str = ""
    words: str = ""
    rows: str = ""
    values: str = ""
    at_least: str = ""
    app: str = ""
    own: str = ""
    home: Path = Path()

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            if not isinstance(body, bytes) and not hasattr(body, "__next__"):
                body = json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, **headers)

    def post(self, stream: str, body: Any, query: str = "", **headers: str) -> Answer:
        path = f"/v1/streams/{quote(stream)}/records{query}"
        return self.request("POST", path, body, **headers)

    def lines(self, stream: str, body: Any, query: str = "", **headers: str) -> Answer:
        return self.post(stream, body, query, Content_Type="application/x-ndjson", **headers)


@contextmanager
def open_door(
    graph: Graph,
    kafka: Connection,
    home: Path,
    *,
    name: str = "door",
    settings: Settings | None = None,
    **options: Any,
) -> Iterator[Door]:
    """Run a gateway in a thread, on a free port; the options are those of its settings."""
    stop = threading.Event()
    reports: list[PartReport] = []
    failed: list[BaseException] = []
    given = settings or Settings(serving=ServingSettings(port=0, **options))
    site = Site(
        settings=given,
        places=Places(home),
        connection=kafka,
        stop=stop,
        report=reports.append,
    )

    def run() -> None:
        try:
            run_gateway(graph, name, site)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until(lambda: failed or any(r.state == "running" for r in list(reports)), "the gateway runs")
    if failed:
        raise failed[0]
    address = reports[-1].detail["listening on"]
    try:
        yield Door(int(address.rpartition(":")[2]), reports)
    finally:
        stop.set()
        thread.join(LIMIT_SECONDS)
        assert not thread.is_alive(), "the gateway did not stop"
    if failed:
        raise failed[0]


@contextmanager
def working(
    graph: Graph, kafka: Connection, home: Path, name: str = "count", **settings: Any
) -> Iterator[None]:
    """Run the service in a thread, as a process of its own would."""
    stop = threading.Event()
    given = Settings(services=ServiceSettings(**settings), serving=ServingSettings(port=0))
    site = Site(
        settings=given, places=Places(home), connection=kafka, stop=stop, report=lambda _: None
    )
    thread = threading.Thread(target=run_services, args=(graph, [name], site), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(LIMIT_SECONDS)
