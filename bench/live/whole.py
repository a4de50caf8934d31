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
START_SECONDS = 120.0
WARM_SECONDS = 25.0


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
    for task in tasks:
        task.cancel()
    counted = sorted(took for sent, took in followers.taken if sent >= counts_from)
    part = lambda share: 1000 * counted[int(share * (len(counted) - 1))]  # noqa: E731
    return {
        "queries": queries,
        "opened in s": opened,
        "writes": written,
        "frames": len(followers.taken),
        "p50 ms": part(0.5),
        "p95 ms": part(0.95),
        "p99 ms": part(0.99),
        **{f"{name} % of a core": 100 * (after[name] - before[name]) / seconds for name in after},
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
