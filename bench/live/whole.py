"""From a write on its way to Kafka to the frame at a client: broker, services, gateway, sockets."""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

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
START_SECONDS = 240.0


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
        for each in ("0", str(port)):
            words = [sys.executable, __file__, broker.connection.bootstrap, each]
            process = subprocess.Popen(words, cwd=home)
            stack.callback(process.wait)
            stack.callback(process.kill)
        return asyncio.run(
            _measure(broker.connection, port, rate=rate, queries=queries, seconds=seconds)
        )


class _Followers:
    """Clients that follow queries over sockets, and when each write came to them."""

    def __init__(self, port: int, queries: int) -> None:
        self._url = f"ws://127.0.0.1:{port}/v1/live"
        self._queries = queries
        self._ready = 0
        self.everything = asyncio.Event()
        self.taken: list[float] = []

    async def follow(self, first: int) -> None:
        """Follow some of the queries, as soon as the gateway listens."""
        while True:
            with suppress(OSError):
                async with connect(self._url, max_size=None) as socket:
                    for number in range(first, min(first + PER_SOCKET, self._queries)):
                        query = {"filter": {"list": f"list-{number}"}}
                        asked = {"type": "subscribe", "id": str(number), "query": query}
                        await socket.send(json.dumps(asked))
                    async for text in socket:
                        self._take(str(text))
            await asyncio.sleep(0.2)

    def _take(self, text: str) -> None:
        if text.startswith('{"type":"changes"'):
            now = time.time()
            events = json.loads(text)["events"]
            self.taken += [now - event["document"]["sent"] for event in events]
        elif text.startswith('{"type":"ready"'):
            self._ready += 1
            if self._ready == self._queries:
                self.everything.set()


async def _measure(
    kafka: Connection, port: int, *, rate: float, queries: int, seconds: float
) -> dict[str, float]:
    followers, began = _Followers(port, queries), time.monotonic()
    tasks = [
        asyncio.create_task(followers.follow(first)) for first in range(0, queries, PER_SOCKET)
    ]
    async with asyncio.timeout(START_SECONDS):
        await followers.everything.wait()
    opened = time.monotonic() - began
    written = await asyncio.to_thread(_write, kafka, rate, queries, seconds)
    deadline = time.monotonic() + 30
    while len(followers.taken) < written and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    taken = followers.taken
    ordered = sorted(taken[len(taken) // 5 :])
    part = lambda share: 1000 * ordered[int(share * (len(ordered) - 1))]  # noqa: E731
    return {
        "queries": queries,
        "opened in s": opened,
        "writes": written,
        "frames": len(taken),
        "p50 ms": part(0.5),
        "p95 ms": part(0.95),
        "p99 ms": part(0.99),
    }


def _write(kafka: Connection, rate: float, queries: int, seconds: float) -> int:
    codec: JsonCodec[Todo] = JsonCodec(todos.record)
    chance, written, began = random.Random(5), 0, time.monotonic()
    with Producer(kafka) as producer:
        while (passed := time.monotonic() - began) < seconds:
            while written < passed * rate:
                number = chance.randrange(queries)
                row = Todo(f"row-{number}", f"list-{number}", time.time())
                producer.send(todos.topic.name, key=codec.key(row), value=codec.encode(row))
                written += 1
            time.sleep(0.002)
        producer.flush()
    return written


def _serve(bootstrap: str, port: int) -> None:
    import signal
    import threading
    from datetime import timedelta

    from penstock.backbone.site import Site
    from penstock.core.graph.parts import Service
    from penstock.core.settings.settings import (
        KafkaSettings,
        ServiceSettings,
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
        settings=Settings(
            kafka=kafka,
            services=ServiceSettings(commit_interval=timedelta(milliseconds=5)),
            serving=ServingSettings(port=port),
        ),
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
