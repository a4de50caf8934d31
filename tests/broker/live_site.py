"""Live queries over a table of todos: services in a thread, a gateway, and clients of sockets."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, Self
from urllib.parse import urlencode

from websockets.sync.client import connect

from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.producer import Producer
from penstock.backbone.site import Site
from penstock.core.feeds.replica import Replica
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.records.codec import JsonCodec
from penstock.core.settings.settings import ServiceSettings, ServingSettings, Settings
from penstock.errors import TransientError
from penstock.machine.places import Places
from penstock.services.engine import run_services

LIMIT_SECONDS = 60.0


@record(key="id")
class Todo:
    id: str
    list: str
    text: str
    rank: int
    done: bool = False
    owner: str = ""


def declare_todos(name: str, *, rows: int = 1, partitions: int = 2, **options: Any) -> App:
    app = App(name)
    todos = app.table(f"{name}.todos", Todo, partitions=partitions)
    rule = "owner = '' or owner = claims.sub"
    live = app.live_queries(f"{name}.live", todos, rows=rows, rule=rule)
    app.gateway("door", live=live, **options)
    return app


@contextmanager
def serving_live(graph: Graph, kafka: Connection, home: Any) -> Iterator[None]:
    """Run all services of an application in a thread, again if the broker was not ready."""
    stop = threading.Event()
    given = Settings(services=ServiceSettings(), serving=ServingSettings(port=0))
    site = Site(
        settings=given, places=Places(home), connection=kafka, stop=stop, report=lambda _: None
    )
    names = [part.name for part in graph.parts if isinstance(part, Service)]
    failed: list[BaseException] = []

    def run() -> None:
        while not stop.is_set():
            try:
                run_services(graph, names, site)
            except TransientError:
                stop.wait(1)
            except BaseException as error:  # noqa: BLE001 - raised again below
                failed.append(error)
                return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(LIMIT_SECONDS)
    if failed:
        raise failed[0]


class Writing:
    """Writes rows of a table."""

    def __init__(self, graph: Graph, kafka: Connection) -> None:
        (self._table,) = [
            data for data in graph.on_log if data.kind == "table" and data.name.endswith(".todos")
        ]
        self._codec: JsonCodec[Any] = JsonCodec(self._table.record)
        self._kafka = kafka
        self.rows: dict[str, Todo] = {}

    def put(self, *rows: Todo) -> None:
        with Producer(self._kafka) as producer:
            for row in rows:
                self.rows[row.id] = row
                key, value = self._codec.key(row), self._codec.encode(row)
                producer.send(self._table.topic.name, key=key, value=value)
            producer.flush()

    def delete(self, *ids: str) -> None:
        with Producer(self._kafka) as producer:
            for each in ids:
                self.rows.pop(each, None)
                producer.send(self._table.topic.name, key=each.encode(), value=None)
            producer.flush()


class Client:
    """A client of one socket, with a copy of the result of each subscription."""

    def __init__(self, port: int, token: str = "") -> None:
        protocols = ["penstock.v1"]
        if token:
            text = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
            protocols.append(f"penstock.token.{text}")
        self._socket = connect(
            f"ws://127.0.0.1:{port}/v1/live",
            subprotocols=protocols,
            open_timeout=LIMIT_SECONDS,
            max_size=None,
            ping_interval=None,  # one that does not read hears no answers
        )
        self.seen: list[dict[str, Any]] = []
        self.copies: dict[str, Replica] = {}

    def send(self, kind: str, **members: Any) -> None:
        self._socket.send(json.dumps({"type": kind, **members}))

    def subscribe(self, name: str, query: Any = None, **members: Any) -> None:
        self.copies.setdefault(name, Replica())
        self.send("subscribe", id=name, query=query or {}, **members)

    def authenticate(self, token: str) -> None:
        self.send("authenticate", token=token)

    def next(self, timeout: float = LIMIT_SECONDS) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._socket.recv(timeout=timeout))
        self.seen.append(message)
        if message.get("id") in self.copies:
            self.copies[message["id"]].take(message)
        return message

    def until(self, kind: str, name: str | None = None) -> dict[str, Any]:
        """Read up to the next message of a kind."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline:
            message = self.next()
            if message["type"] == kind and name in (None, message.get("id")):
                return message
        raise AssertionError(f"no {kind} within {LIMIT_SECONDS:g}s")

    def until_ids(self, name: str, expected: Any) -> None:
        """Read until a copy has these documents: a list in order, or a set."""
        copy = self.copies[name]
        deadline = time.monotonic() + LIMIT_SECONDS

        def found() -> Any:
            ids = [each["_id"] for each in copy.documents]
            return ids if isinstance(expected, list) else set(ids)

        while not copy.ready or found() != expected:
            assert time.monotonic() < deadline, f"{name} has {found()}, not {expected}"
            self.next()

    def until_that(self, condition: Callable[[], bool]) -> None:
        """Read until something is as it is to be."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"not within {LIMIT_SECONDS:g}s"
            self.next()

    @property
    def types(self) -> list[str]:
        return [message["type"] for message in self.seen if message["type"] != "up-to-date"]

    @property
    def close_code(self) -> int | None:
        return self._socket.protocol.close_code

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EventClient:
    """A client of one stream of server-sent events."""

    def __init__(self, port: int, asked: Any, *, last_id: str = "", method: str = "POST") -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
        headers = {"Last-Event-ID": last_id} if last_id else {}
        if method == "GET":
            path = f"/v1/live/events?{urlencode({'subscribe': json.dumps(asked)})}"
            self._connection.request("GET", path, headers=headers)
        else:
            headers["Content-Type"] = "application/json"
            body = json.dumps({"subscribe": [asked]})
            self._connection.request("POST", "/v1/live/events", body, headers)
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        self.copy = Replica()
        self.kinds: list[str] = []
        self.last_id = ""

    def next(self) -> dict[str, Any]:
        fields: dict[str, str] = {}
        while (line := self._response.readline().decode().rstrip("\n")) or "data" not in fields:
            name, _, value = line.partition(": ")
            fields[name] = value
        message: dict[str, Any] = json.loads(fields["data"])
        assert message["type"] == fields["event"]
        self.kinds.append(message["type"])
        self.last_id = fields.get("id", self.last_id)
        if "id" in message and message["type"] != "error":
            self.copy.take(message)
        return message

    def until(self, kind: str) -> None:
        while self.next()["type"] != kind:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()
        self._connection.close()
