"""A stream of small batches beside a large table, and the same stream without it.

    python bench/pipelines/lookups.py [--rows 5000000] [--records 10000] [--json FILE]

Both pipelines read the same stream and write as many rows, one after the other, each batch of so
many records. The time of a batch is Spark's own: the median of those after the first two.
"""

import argparse
import json
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import confluent_kafka
from pyspark.sql import DataFrame

from penstock import App, micro_batch, record
from penstock.backbone.declare import declare_application
from penstock.backbone.site import Site
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Settings
from penstock.machine.places import Places
from penstock.pipelines.checkpoint.progress import batch_seconds
from penstock.pipelines.execution import running
from penstock.pipelines.execution.engine import run_pipelines
from penstock.testing.broker import temporary_broker

LIMIT_SECONDS = 400


@record(key="device")
class Reading:
    device: str
    celsius: float


@record(key="device")
class Device:
    device: str
    owner: str
    site: str


@record(key="device")
class Placed:
    device: str
    celsius: float
    owner: str | None = None


def application() -> App:
    app = App("lookups")
    readings, devices = app.stream("readings", Reading), app.table("devices", Device)
    alone, placed = app.stream("alone", Placed), app.stream("placed", Placed)

    @app.pipeline(reads=readings, writes=alone, trigger=micro_batch(every="100ms"))
    def without(readings: DataFrame) -> DataFrame:
        return readings

    @app.pipeline(reads=(readings, devices), writes=placed, trigger=micro_batch(every="100ms"))
    def beside(readings: DataFrame, devices: DataFrame) -> DataFrame:
        return readings.join(devices.select("device", "owner"), "device", "left")

    return app


def fill(bootstrap: str, topic: str, values: Any) -> None:
    """Write records in one transaction: a batch has all of them."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "fill",
            "linger.ms": 50,
            "queue.buffering.max.messages": 200_000,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions()
    producer.begin_transaction()
    for number, value in enumerate(values):
        producer.produce(topic, key=value["device"].encode(), value=json.dumps(value).encode())
        if number % 50_000 == 0:
            producer.flush()
    producer.commit_transaction()


class Batches:
    """The seconds of batches with records, as the pipeline itself follows them."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def follow(self, part: Any, progress: Any) -> None:
        if progress["numInputRows"]:
            self.seconds.append(batch_seconds(progress))
        FOLLOW(part, progress)


FOLLOW = running.RunningPipeline._follow  # noqa: SLF001


def measure(site_of: Any, graph: Any, name: str, send: Any, batches: int) -> list[float]:
    """Return the seconds of each batch; the next records are sent when the batch is done."""
    seen, stop = Batches(), threading.Event()

    def follow(part: Any, progress: Any) -> None:
        seen.follow(part, progress)

    running.RunningPipeline._follow = follow  # type: ignore[method-assign] # noqa: SLF001
    thread = threading.Thread(target=run_pipelines, args=(graph, [name], site_of(stop)))
    thread.start()
    deadline = time.monotonic() + LIMIT_SECONDS
    for number in range(batches):
        send()
        while len(seen.seconds) <= number and thread.is_alive():
            if time.monotonic() > deadline:
                raise TimeoutError(name)
            time.sleep(0.02)
    stop.set()
    thread.join()
    return seen.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chance = random.Random(1)
    graph = verified(application().graph)
    with tempfile.TemporaryDirectory() as home, temporary_broker() as broker:
        connection = broker.connection
        declare_application(graph, connection)
        began = time.perf_counter()
        fill(
            connection.bootstrap,
            "devices",
            (
                {"device": f"d{each}", "owner": f"owner {each % 1000}", "site": f"site {each % 97}"}
                for each in range(options.rows)
            ),
        )
        print(f"{options.rows:,} rows in {time.perf_counter() - began:.0f} s", flush=True)

        def send() -> None:
            fill(
                connection.bootstrap,
                "readings",
                (
                    {"device": f"d{chance.randrange(options.rows)}", "celsius": 20.5}
                    for _ in range(options.records)
                ),
            )

        def site_of(stop: threading.Event) -> Site:
            return Site(
                settings=Settings(),
                places=Places(Path(home)),
                connection=connection,
                stop=stop,
                report=lambda _: None,
            )

        figures: dict[str, Any] = {"rows": options.rows, "records": options.records}
        for name in ("without", "beside"):
            seconds = measure(site_of, graph, name, send, options.batches)
            figures[name] = {
                "first": seconds[0],
                "median": statistics.median(seconds[2:]),
                "all": seconds,
            }
            print(name, figures[name], flush=True)
        figures["ratio"] = figures["beside"]["median"] / figures["without"]["median"]
        print(f"ratio {figures['ratio']:.2f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
