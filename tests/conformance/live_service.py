"""Cases of live queries as services on a real broker, on a grid of tasks, all cases side by side.

All cases share one table and one application. A field of each document says which case it is of,
and each query asks for that too. The first writes of all cases are written together, then the
second ones, and so on. Between them the engine waits until **watches** have heard of writes to each
partition: queries of its own, one for each way that news can take.
"""

import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import count, product
from pathlib import Path
from typing import Any
from zlib import crc32

from live_form import REFUSED, Case, Followed, Outcome, declared, row_of

from penstock import App, services
from penstock.backbone.client.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.site import Site
from penstock.core.graph.parts import Service
from penstock.core.grid.livequeries import cell_keys
from penstock.core.grid.messages import Asked, News
from penstock.core.partitioner import partition_of
from penstock.core.records.codec import JsonCodec
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Secret, ServingSettings, Settings
from penstock.machine.places import Places
from penstock.testing.broker import temporary_broker

__all__ = ["ServiceEngine"]

CASE, WATCH = "~case", "watch"
PATIENCE = 120.0


class ServiceEngine:
    """Runs all cases in one application."""

    def __init__(self, size: int = 3, connection: Connection | None = None) -> None:
        self._stack = ExitStack()
        if connection is None:
            broker = self._stack.enter_context(temporary_broker())
            connection = Connection(broker.bootstrap, broker.settings)
        app = App("live-cases")
        self._connection = connection
        self._table, self._live = declared(app, "live-cases.", size=size)
        self._graph = verified(app.graph)
        self._watches = tuple(_watches(size))
        self._columns = cell_keys(size)
        self._came: deque[News] = deque()
        self._news: defaultdict[str, list[News]] = defaultdict(list)
        self._waves = count(1)
        declare_application(self._graph, connection)
        self._producer = self._stack.enter_context(Producer(connection))
        self._begin()

    def run(self, cases: list[Case]) -> list[Outcome]:
        """Return the outcome of each case."""
        queries = [case.query() for case in cases]
        followed = {
            number: Followed(case, query)
            for number, (case, query) in enumerate(zip(cases, queries, strict=True))
            if query is not None
        }
        for number in followed:
            for document in cases[number].before:
                self._write(number, document)
        self._settle()
        for number in followed:
            self._ask(f"case-{number}", _within(cases[number].given, number))
        self._producer.flush()
        self._wait(lambda: all(self._begun(f"case-{number}") for number in followed))
        self._step(followed)
        for wave in range(max((len(case.writes) for case in cases), default=0)):
            for number in followed:
                self._one(number, cases[number], wave)
            self._settle()
            self._step(
                {
                    number: each
                    for number, each in followed.items()
                    if wave < len(cases[number].writes)
                }
            )
        return [
            followed[number].end() if number in followed else Outcome(case.expected, [REFUSED])
            for number, case in enumerate(cases)
        ]

    def close(self) -> None:
        """End the services and the broker."""
        self._stack.close()

    def _one(self, number: int, case: Case, wave: int) -> None:
        if wave >= len(case.writes):
            return
        operation, given = case.writes[wave]
        if operation == "delete":
            key = row_of({"_id": given}, f"{number} ").id
            self._producer.send(self._table.topic.name, key=key.encode(), value=None)
        else:
            self._write(number, given)

    def _step(self, followed: dict[int, Followed]) -> None:
        for number, each in followed.items():
            each.step(self._news.pop(f"case-{number}", []))

    def _write(self, number: int | str, document: Any, key: str | None = None) -> None:
        row = row_of({**document, CASE: number}, f"{number} ")
        codec: JsonCodec[Any] = JsonCodec(self._table.record)
        found = row if key is None else replace_key(row, key)
        self._producer.send(self._table.topic.name, key=codec.key(found), value=codec.encode(found))

    def _ask(self, name: str, query: Any) -> None:
        codec: JsonCodec[Any] = JsonCodec(self._live.asked.record)
        asked = Asked(id=name, query=json.dumps(query))
        self._producer.send(
            self._live.asked.topic.name, key=codec.key(asked), value=codec.encode(asked)
        )

    def _settle(self) -> None:
        """Wait until everything that was written has become news, if it becomes any."""
        wave = next(self._waves)
        for key in self._columns:
            self._write(WATCH, {"_id": key, "wave": wave}, key=key)
        self._producer.flush()
        waiting = {(name, key) for name, key in product(self._watches, self._columns)}

        def settled() -> bool:
            for name in self._watches:
                for each in self._news.pop(name, ()):
                    found = json.loads(each.document) if each.document else {}
                    if found.get("wave") == wave:
                        waiting.discard((name, found["_id"]))
            return not waiting

        self._wait(settled)

    def _begun(self, name: str) -> bool:
        return any(each.what == "ready" for each in self._news[name])

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise AssertionError(f"the services have stopped: {self._error}")
            time.sleep(0.02)
            self._hear()

    def _hear(self) -> None:
        """Take all news that has come; whatever concerns no watch waits for its step."""
        while self._came:
            news = self._came.popleft()
            self._news[news.id].append(news)

    def _follow(self, stop: threading.Event) -> None:
        codec: JsonCodec[Any] = JsonCodec(self._live.news.record)
        topic = self._live.news.topic.name
        for batch in LogReader(self._connection).batches(topic, follow=True, stop=stop):
            self._came += (codec.accept(raw.key(), raw.value()) for raw in batch)

    def _begin(self) -> None:
        secret = Secret("of the processes of a test")  # so that no file is made for it
        settings = Settings(serving=ServingSettings(secret=secret))
        self._error: BaseException | None = None
        site = Site(
            settings=settings,
            places=Places(Path.cwd()),
            connection=self._connection,
            stop=threading.Event(),
            report=lambda _: None,
        )
        names = [part.name for part in self._graph.parts if isinstance(part, Service)]

        def work() -> None:
            try:
                services.run(self._graph, names, site)
            except BaseException as error:  # noqa: BLE001 - whoever waits says it
                self._error = error

        self._thread = threading.Thread(target=work)
        hearing = threading.Thread(target=self._follow, args=(site.stop,))
        for thread in (self._thread, hearing):
            thread.start()
            self._stack.callback(thread.join)
        self._stack.callback(site.stop.set)
        for name in self._watches:
            self._ask(name, {"filter": {CASE: WATCH}})
        self._producer.flush()


def replace_key(row: Any, key: str) -> Any:
    """Return a row with another key."""
    return type(row)(key, row.body)


def _within(query: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the query of a case over the documents of that case."""
    return {**query, "filter": {"$and": [{CASE: number}, query.get("filter", {})]}}


def _watches(size: int) -> Iterable[str]:
    """Return a name of a query for each row of the grid and each partition of the news."""
    for row, partition in product(range(size), range(size)):
        yield next(
            name
            for name in (f"{WATCH}-{number}" for number in count())
            if crc32(name.encode()) % size == row and partition_of(name.encode(), size) == partition
        )
