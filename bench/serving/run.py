"""Serving side by side with what it stands on, on a real broker, in one run.

``python bench/serving/run.py [--seconds N] [--json FILE]`` (two minutes) measures

- a POST of one record, acknowledged by all replicas, beside the same server answering an empty 200;
- lines (NDJSON) beside the bare producer, with an answer for each record and with a count alone;
- what an idle WebSocket takes in the memory of the gateway;
- questions at 200/s, each through Kafka, a service and back, at least once and exactly once;
- look-ups by key at 2,000/s, from another process than the state's, while the stream runs at half
  of what it reaches alone; and what that costs the stream.

Client, gateway, service and broker share the cores of one machine: what is measured is the whole.
"""

import argparse
import asyncio
import http.client
import json
import random
import runpy
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import psutil
from app import app
from ground import cores, flood, idle_sockets, parts, request, steady

from penstock.backbone.client.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.producer import Producer, SendLimits
from penstock.core.rules.check import verified
from penstock.core.settings.settings import KafkaSettings
from penstock.testing.broker import temporary_broker

CONNECTIONS = 32
POSTING = 128
LINES = 300_000
BACKLOG_SECONDS = 120_000
"""So many records for each second of the run wait for the service before it is measured."""
RATE = 2000.0
ASKED = 200.0
SOCKETS = 5000
KEYS = 10_000
RECORD = b'{"device":"device-%d","celsius":21.5,"place":"on the roof"}'
READINGS, TAKEN = "serving-bench.readings", "serving-bench.taken"


def posts(port: int, seconds: float) -> dict[str, float]:
    """Return how fast one record is taken, beside an empty answer of the same server."""
    empty, post = [], []
    payload = request("POST", f"/v1/streams/{TAKEN}/records", RECORD % 7)
    for _ in range(3):  # in turn, so that both meet the same machine
        run = {"connections": POSTING, "seconds": seconds / 6}
        empty.append(asyncio.run(flood(port, request("GET", "/v1/health"), **run)))
        post.append(asyncio.run(flood(port, payload, **run)))
    found = {"empty 200/s": statistics.median(empty), "POST/s": statistics.median(post)}
    return found | {"ratio": found["POST/s"] / found["empty 200/s"]}


def lines(port: int, kafka: Connection) -> dict[str, float]:
    """Return how fast lines are taken, beside the bare producer."""
    records = [RECORD % (number % KEYS) for number in range(LINES)]
    with Producer(kafka, limits=SendLimits()) as producer:
        began = time.monotonic()
        for number, value in enumerate(records):
            producer.send(TAKEN, key=b"device-%d" % (number % KEYS), value=value)
        producer.flush()
        bare = LINES / (time.monotonic() - began)
    body = b"\n".join(records) + b"\n"
    found = {"bare producer/s": bare}
    for name, query in (("lines, a count", "?answer=summary"), ("lines, each answered", "")):
        began = time.monotonic()
        _send(port, body, query)
        found[f"{name}/s"] = LINES / (time.monotonic() - began)
        found[f"{name}, ratio"] = found[f"{name}/s"] / bare
    return found


def _send(port: int, body: bytes, query: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.putrequest("POST", f"/v1/streams/{TAKEN}/records{query}")
    connection.putheader("Content-Type", "application/x-ndjson")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    sending = threading.Thread(target=connection.send, args=(body,))
    sending.start()
    response = connection.getresponse()  # it is read while the body is still being sent
    last = b""
    while piece := response.read(1 << 20):
        last = (last + piece)[-4096:]
    sending.join()
    told = json.loads(last.splitlines()[-1])
    if told != {"accepted": LINES, "refused": 0}:
        raise RuntimeError(told)


def sockets(port: int, path: str) -> dict[str, float]:
    """Return what an idle WebSocket takes in the memory of the gateway."""
    door = next(each for each in psutil.Process().children() if "door" in each.cmdline())

    async def measure() -> dict[str, float]:
        await idle_sockets(port, path, count=100)  # what it makes once
        before = door.memory_info().rss
        opened = await idle_sockets(port, path, count=SOCKETS)
        used = door.memory_info().rss - before
        for writer in opened:
            writer.close()
        return {"idle sockets": float(SOCKETS), "KB each": used / SOCKETS / 1024}

    return asyncio.run(measure())


def fill(kafka: Connection, count: int, *, rate: float | None = None) -> None:
    """Write readings, as fast as it goes or at a steady rate."""
    began = time.monotonic()
    with Producer(kafka) as producer:
        for number in range(count):
            device = b"device-%d" % (number % KEYS)
            producer.send(READINGS, key=device, value=RECORD % (number % KEYS))
            if rate is not None and number % 100 == 0:
                time.sleep(max(0.0, began + number / rate - time.monotonic()))


@contextmanager
def feeding(kafka: Connection, rate: float) -> Iterator[None]:
    """Write readings at a steady rate, from a process of its own."""
    command = [sys.executable, __file__, "--feed", kafka.bootstrap, "--rate", str(rate)]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def handled(kafka: Connection) -> int:
    return sum(each.committed for each in Groups(kafka).lag("serving-bench.watch").values())


def speed(kafka: Connection, seconds: float) -> float:
    """Return the records that the service commits per second."""
    before, began = handled(kafka), time.monotonic()
    time.sleep(seconds)
    return (handled(kafka) - before) / (time.monotonic() - began)


def lookups(port: int, kafka: Connection, home: Path, seconds: float) -> dict[str, float]:
    """Return the latency of look-ups while the stream runs, and what they cost it."""
    backlog = int(BACKLOG_SECONDS * seconds)
    fill(kafka, backlog)
    rng = random.Random(7)
    path = "/v1/states/watch/highest/values/device-%d"
    payloads = [request("GET", path % rng.randrange(KEYS)) for _ in range(1000)]

    def ask(long: float) -> list[float]:
        options = {"rate": RATE, "connections": CONNECTIONS, "seconds": long}
        return sorted(asyncio.run(steady(port, payloads, **options)))

    found: dict[str, float] = {}
    with parts(kafka, home, "watch"):
        while handled(kafka) < 3 * KEYS:  # it runs, and every key has a value
            time.sleep(0.1)
        rates: dict[bool, list[float]] = {False: [], True: []}
        for asked in (False, True, False, True):  # in turn, so that both meet the same machine
            asking = threading.Thread(target=ask, args=(seconds / 10,))
            if asked:
                asking.start()
            rates[asked].append(speed(kafka, seconds / 10))
            if asked:
                asking.join()
        alone = found["stream alone/s"] = statistics.median(rates[False])
        found["stream while asked/s"] = statistics.median(rates[True])
        found["stream while asked, ratio"] = found["stream while asked/s"] / alone
        while handled(kafka) < backlog and speed(kafka, 1.0):
            pass
        took = {"idle": ask(seconds / 4)}
        with feeding(kafka, alone / 2):
            time.sleep(2)
            before, began = handled(kafka), time.monotonic()
            took["at half"] = ask(seconds / 2)
            found["stream at half/s"] = (handled(kafka) - before) / (time.monotonic() - began)
    for name, values in took.items():
        for point in (50, 99):
            found[f"look-up p{point} ms, {name}"] = values[len(values) * point // 100] * 1000
    return found


def questions(port: int, kafka: Connection, home: Path, seconds: float) -> dict[str, float]:
    """Return how long a question takes through Kafka, a service and back."""
    payload = b'{"device":"device-%d","celsius":21.5}'
    found: dict[str, float] = {}
    for name, part in (("least", "least_clerk"), ("once", "once_clerk")):
        path = f"/v1/questions/serving-bench.{name}"
        payloads = [request("POST", path, payload % number) for number in range(1000)]

        def ask(long: float, payloads: list[bytes] = payloads) -> list[float]:
            options = {"rate": ASKED, "connections": CONNECTIONS, "seconds": long}
            return sorted(asyncio.run(steady(port, payloads, **options)))

        with parts(kafka, home, part):
            ask(1.0)  # until it runs
            took = ask(seconds / 2)
        for point in (50, 99):
            found[f"{name}, p{point} ms"] = took[len(took) * point // 100] * 1000
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", help="some of what is measured: 'one record,questions'")
    parser.add_argument("--feed", help=argparse.SUPPRESS)
    parser.add_argument("--rate", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.feed:
        fill(Connection(arguments.feed, KafkaSettings()), 10**9, rate=arguments.rate)
        return
    found: dict[str, Any] = {"cores": cores()}
    with tempfile.TemporaryDirectory() as directory, temporary_broker() as broker:
        kafka, home = broker.connection, Path(directory)
        declare_application(verified(app.graph), kafka)
        with parts(kafka, home, "door") as port:
            for name, measured in (
                ("one record", lambda: posts(port, arguments.seconds)),
                ("lines", lambda: lines(port, kafka)),
                ("sockets", lambda: sockets(port, f"/v1/streams/{TAKEN}/socket")),
                ("questions", lambda: questions(port, kafka, home, arguments.seconds)),
                ("look-ups", lambda: lookups(port, kafka, home, arguments.seconds)),
            ):
                if arguments.only and name not in arguments.only.split(","):
                    continue
                found[name] = measured()
                for what, value in found[name].items():
                    print(f"{name:12} {what:32} {value:12,.2f}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
