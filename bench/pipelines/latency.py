"""Latency from Kafka to Kafka of a pipeline, in real-time mode and in micro-batches.

    python bench/pipelines/latency.py [--rate 1000] [--seconds 120] [--json FILE]

``penstock run`` in a process of its own; this one sends at a steady rate and reads what comes out.
A record carries the moment it was sent; its latency is how long after that it was read from the
output, by the same clock. Real-time mode ends a batch every minute (its checkpoint): the time until
it has done so once warms up and is not counted, and what is counted holds two such ends.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
from figures import percentiles
from latency_app import app

from penstock.backbone.client.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.log.producer import Producer, SendLimits
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import LATEST
from penstock.core.rules.check import verified
from penstock.testing.broker import temporary_broker

HERE = Path(__file__).parent
MODES = {
    "real time": ("pass_at_once", "at_once", 70),
    "micro-batches": ("pass_in_batches", "in_batches", 10),
}
"""By name: the pipeline, what it writes, and the seconds that warm it up."""
LIMIT_SECONDS = 180.0
STOP_SECONDS = 60
KEYS = 1_000


@contextmanager
def running(kafka: Connection, part: str, home: Path) -> Iterator[None]:
    settings = [f"home={home}", f"kafka.bootstrap={kafka.bootstrap}"]
    words = [word for each in settings for word in ("--set", each)]
    command = [sys.executable, "-m", "penstock.cli", "run", str(HERE / "latency_app.py")]
    with (home / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, "--part", part, *words], stdout=said, stderr=said, stdin=subprocess.DEVNULL
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Watch:
    """Reads an output as it comes; notes when each record was sent and how long it took."""

    def __init__(self, kafka: Connection, topic: str) -> None:
        self.taken: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(kafka, topic), daemon=True)
        self._thread.start()

    def _read(self, kafka: Connection, topic: str) -> None:
        for batch in LogReader(kafka).batches(topic, start=LATEST, follow=True, stop=self._stop):
            now = time.time()
            for raw in batch:
                sent = msgspec.json.decode(raw.value() or b"")["sent"] / 1e6
                self.taken.append((sent, now - sent))

    def end(self) -> None:
        self._stop.set()
        self._thread.join(STOP_SECONDS)


def send(kafka: Connection, *, rate: int, seconds: float) -> None:
    encode, pause = msgspec.json.Encoder().encode, threading.Event()
    began = time.perf_counter()
    # The sender does not wait for company: it is not what is measured.
    with Producer(kafka, limits=SendLimits(linger=timedelta())) as producer:
        for number in range(round(rate * seconds)):
            wait = began + number / rate - time.perf_counter()
            if wait > 0:
                pause.wait(wait)
            device = f"device-{number % KEYS}"
            value = {"device": device, "sent": round(time.time() * 1e6), "celsius": 20.0}
            producer.send("stamped", key=device.encode(), value=encode(value))


def measure(kafka: Connection, mode: str, *, rate: int, seconds: int) -> list[float]:
    part, topic, warm = MODES[mode]
    with (
        tempfile.TemporaryDirectory(prefix="penstock-latency-") as home,
        running(kafka, part, Path(home)),
    ):
        watch = Watch(kafka, topic)
        deadline = time.monotonic() + LIMIT_SECONDS
        while not watch.taken:
            if time.monotonic() > deadline:
                raise SystemExit(f"nothing came out: {Path(home, 'said').read_text()[-2000:]}")
            send(kafka, rate=10, seconds=1)
        warm_until = time.time() + warm
        send(kafka, rate=rate, seconds=warm + seconds)
        threading.Event().wait(2)
        watch.end()
    return percentiles([took for sent, took in watch.taken if sent >= warm_until])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--only", nargs="*", choices=list(MODES), default=list(MODES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    with temporary_broker() as broker:
        declare_application(verified(app.graph), broker.connection)
        for mode in options.only:
            seconds = options.seconds if mode == "real time" else min(20, options.seconds)
            p50, p99, worst = measure(broker.connection, mode, rate=options.rate, seconds=seconds)
            found[mode] = {"p50": p50, "p99": p99, "p99.9": worst}
            print(f"{mode:14} p50 {p50:.1f} ms  p99 {p99:.1f} ms  p99.9 {worst:.1f} ms", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
