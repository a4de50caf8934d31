"""From a write on its way to Kafka to the frame at a client: broker, services, gateway, sockets.

Writes of a warm-up, which has the same rate, are not counted: a broker, services and a gateway that
run for long are what is measured. Processor time is that of each process while it was measured;
``others`` is what else ran on the machine, because a machine that is busy makes everything later.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import quote

from websockets.asyncio.client import connect

from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.log.producer import Producer
from penstock.core.records.codec import JsonCodec
from penstock.core.rules.check import verified
from penstock.machine.ports import free_ports
from penstock.testing.broker import temporary_broker

__all__ = ["latency"]

PER_SOCKET = 1000
START_SECONDS = 120.0
WARM_SECONDS = 20.0


@record(key="id")
class Todo:
    id: str
    list: str
    sent: float


app = App("live-bench")
todos = app.table("live-bench.todos", Todo, partitions=2)
live = app.live_queries("live-bench.live", todos, rows=1)
app.gateway("door", live=live)


def latency(*, rate: float, queries: int, seconds: float) -> dict[str, float]:
    """Return milliseconds from a write to its frame; each write changes one query's result."""
    with ExitStack() as stack:
        broker = stack.enter_context(temporary_broker())
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        graph = verified(app.graph)
        declare_application(graph, broker.connection)
        (port,) = free_ports(1)
        processes = {"broker": broker.pids[0], "client": os.getpid()}
        for name, each in (("services", "0"), ("gateway", str(port))):
            words = [sys.executable, __file__, broker.connection.bootstrap, each]
            process = subprocess.Popen(words, cwd=home)
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes[name] = process.pid
        return asyncio.run(
            _measure(
                broker.connection,
                _Followers(port, queries),
                _Spent(processes),
                rate=rate,
                seconds=seconds,
            )
        )


class _Spent:
    """The processor time that processes have taken, and the machine with all that is on it."""

    def __init__(self, processes: dict[str, int]) -> None:
        self._processes = processes
        self._tick = os.sysconf("SC_CLK_TCK")

    def now(self) -> dict[str, float]:
        """Return the seconds of each until now."""
        found = {name: self._of(number) for name, number in self._processes.items()}
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        idle = int(words[4]) + int(words[5])
        busy = (sum(map(int, words[1:9])) - idle) / self._tick
        return {**found, "others": busy - sum(found.values())}

    def _of(self, number: int) -> float:
        words = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / self._tick


class _Followers:
    """Clients that follow queries over sockets, and when each write came to them."""

    def __init__(self, port: int, queries: int) -> None:
        self._url = f"ws://127.0.0.1:{port}/v1/live"
        self.port = port
        self.queries = queries
        self._ready = 0
        self.everything = asyncio.Event()
        self.taken: list[tuple[float, float]] = []
        """When each write was sent, and how long it took."""

    async def follow(self, first: int) -> None:
        """Follow some of the queries, as soon as the gateway listens."""
        while True:
            with suppress(OSError):
                async with connect(self._url, max_size=None) as socket:
                    for number in range(first, min(first + PER_SOCKET, self.queries)):
                        query = {"filter": {"list": f"list-{number}"}}
                        asked = {"type": "subscribe", "id": str(number), "query": query}
                        await socket.send(json.dumps(asked))
                    async for text in socket:
                        self._take(str(text))
            await asyncio.sleep(0.2)

    def _take(self, text: str) -> None:
        if text.startswith('{"type":"changes"'):
            now = time.time()
            for event in json.loads(text)["events"]:
                sent = event["document"]["sent"]
                self.taken.append((sent, now - sent))
        elif text.startswith('{"type":"ready"'):
            self._ready += 1
            if self._ready == self.queries:
                self.everything.set()


async def _measure(
    kafka: Connection, followers: _Followers, spent: _Spent, *, rate: float, seconds: float
) -> dict[str, float]:
    began, queries = time.monotonic(), followers.queries
    tasks = [
        asyncio.create_task(followers.follow(first)) for first in range(0, queries, PER_SOCKET)
    ]
    async with asyncio.timeout(START_SECONDS):
        await followers.everything.wait()
    opened = time.monotonic() - began
    written = await asyncio.to_thread(_write, kafka, rate, queries, WARM_SECONDS)
    before, counts_from = spent.now(), time.time()
    written += await asyncio.to_thread(_write, kafka, rate, queries, seconds)
    after = spent.now()
    deadline = time.monotonic() + 30
    while len(followers.taken) < written and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    taken = [*followers.taken]
    cache = await asyncio.to_thread(_Cache(kafka, followers.port).measure)
    for task in tasks:
        task.cancel()
    counted = sorted(took for sent, took in taken if sent >= counts_from)
    part = lambda share: 1000 * counted[int(share * (len(counted) - 1))]  # noqa: E731
    return {
        "queries": queries,
        "opened in s": opened,
        "writes": written,
        "frames": len(taken),
        "p50 ms": part(0.5),
        "p95 ms": part(0.95),
        "p99 ms": part(0.99),
        **cache,
        **{f"{name} % of a core": 100 * (after[name] - before[name]) / seconds for name in after},
    }


class _Cache:
    """Asks for cached results again and again while rows of them are written.

    Each was asked for once before: that is how long a miss takes. An answer is stale by the time
    since the first write that it does not show, counted from when it was asked for.
    """

    QUERIES, WRITES, SECONDS = 100, 200.0, 8.0

    def __init__(self, kafka: Connection, port: int) -> None:
        self._kafka = kafka
        self._port = port
        self._known: dict[int, tuple[str, float]] = {}
        self._sent: dict[int, list[float]] = {number: [] for number in range(self.QUERIES)}

    def measure(self) -> dict[str, float]:
        """Return how many answers came from the cache, and how stale they were."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=30)
        began = time.monotonic()
        for number in range(self.QUERIES):
            self._ask(connection, number)
        missed = time.monotonic() - began
        writer = threading.Thread(target=self._write)
        writer.start()
        chance, ended = random.Random(8), time.monotonic() + self.SECONDS
        asked, hits, same, stale = 0, 0, 0, []
        while time.monotonic() < ended:
            number = chance.randrange(self.QUERIES)
            now = time.time()
            answer = self._ask(connection, number)
            shown = self._known[number][1]
            asked += 1
            hits += answer.headers["X-Cache"] == "hit"
            same += answer.status == HTTPStatus.NOT_MODIFIED
            missing = [sent for sent in [*self._sent[number]] if shown < sent < now]
            stale.append(now - missing[0] if missing else 0.0)
        writer.join()
        stale.sort()
        return {
            "a miss ms": 1000 * missed / self.QUERIES,
            "cached answers/s": asked / self.SECONDS,
            "hits %": 100 * hits / asked,
            "not modified %": 100 * same / asked,
            "stale p50 ms": 1000 * stale[len(stale) // 2],
            "stale p99 ms": 1000 * stale[int(0.99 * (len(stale) - 1))],
            "stale at most ms": 1000 * stale[-1],
        }

    def _ask(self, connection: HTTPConnection, number: int) -> HTTPResponse:
        """Ask for a result, and keep its entity tag and its newest row."""
        query = {"filter": {"list": f"list-{number}"}, "fields": ["sent"]}
        tag, shown = self._known.get(number, ("", 0.0))
        path = f"/v1/live/result?query={quote(json.dumps(query))}"
        connection.request("GET", path, headers={"If-None-Match": tag} if tag else {})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == HTTPStatus.OK:
            shown = max((each["sent"] for each in json.loads(body)["documents"]), default=0.0)
        self._known[number] = (answer.headers["ETag"], shown)
        return answer

    def _write(self) -> None:
        def sent(row: Todo, number: int) -> None:
            self._sent[number].append(row.sent)

        _write(self._kafka, self.WRITES, self.QUERIES, self.SECONDS, told=sent)


def _write(
    kafka: Connection,
    rate: float,
    queries: int,
    seconds: float,
    *,
    told: Callable[[Todo, int], None] = lambda _row, _number: None,
) -> int:
    codec: JsonCodec[Todo] = JsonCodec(todos.record)
    chance, written, began = random.Random(5), 0, time.monotonic()
    with Producer(kafka) as producer:
        while (passed := time.monotonic() - began) < seconds:
            while written < passed * rate:
                number = chance.randrange(queries)
                row = Todo(f"row-{number}", f"list-{number}", time.time())
                producer.send(todos.topic.name, key=codec.key(row), value=codec.encode(row))
                told(row, number)
                written += 1
            time.sleep(0.002)
        producer.flush()
    return written


def _serve(bootstrap: str, port: int) -> None:
    import signal

    from penstock.backbone.site import Site
    from penstock.core.graph.parts import Service
    from penstock.core.settings.settings import (
        KafkaSettings,
        ServingSettings,
        Settings,
    )
    from penstock.machine.places import Places
    from penstock.services.engine import run_services
    from penstock.serving.engine import run_gateway

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    kafka = KafkaSettings()
    site = Site(
        settings=Settings(kafka=kafka, serving=ServingSettings(port=port)),
        places=Places(Path.cwd()),
        connection=Connection(bootstrap, kafka),
        stop=stop,
        report=lambda _: None,
    )
    graph = verified(app.graph)
    if port:
        run_gateway(graph, "door", site)
    else:
        run_services(graph, [p.name for p in graph.parts if isinstance(p, Service)], site)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
