"""A stream of small batches beside a large table, and the same batches without it.

    python bench/pipelines/lookups.py [--rows 5000000] [--records 10000] [--json FILE]

Two pipelines do the same work in one Spark, one of them beside the table. Batches of so many
records go to the one and to the other in turn, so that whatever else runs on the machine is in
both. The time of a batch is Spark's own: the median of those after the first two.
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
import msgspec
from pyspark.sql import DataFrame

from penstock import App, micro_batch, record
from penstock.backbone.declare import declare_application
from penstock.backbone.site import Site
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Settings
from penstock.machine.places import Places
from penstock.pipelines.checkpoint.progress import batch_seconds
from penstock.pipelines.execution.engine import run_pipelines
from penstock.pipelines.execution.running import RunningPipeline
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


NAMES = ("without", "beside")


def application() -> App:
    app = App("lookups")
    devices = app.table("devices", Device)
    for_one, for_other = (app.stream(f"readings_{name}", Reading) for name in NAMES)
    alone, placed = (app.stream(f"placed_{name}", Placed) for name in NAMES)

    @app.pipeline(reads=for_one, writes=alone, trigger=micro_batch(every="100ms"))
    def without(readings: DataFrame) -> DataFrame:
        return readings

    @app.pipeline(reads=(for_other, devices), writes=placed, trigger=micro_batch(every="100ms"))
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
        producer.produce(topic, key=value["device"].encode(), value=msgspec.json.encode(value))
        if number % 50_000 == 0:
            producer.flush()
    producer.commit_transaction()


def measure(graph: Any, site: Site, stop: threading.Event, send: Any, batches: int) -> Any:
    """Return the seconds of each batch of each pipeline; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in NAMES}
    followed = RunningPipeline._follow  # noqa: SLF001

    def follow(part: RunningPipeline, progress: Any) -> None:
        if progress["numInputRows"]:
            seconds[part.pipeline.name].append(batch_seconds(progress))
        followed(part, progress)

    RunningPipeline._follow = follow  # type: ignore[method-assign] # noqa: SLF001
    thread = threading.Thread(target=run_pipelines, args=(graph, NAMES, site))
    thread.start()
    deadline = time.monotonic() + LIMIT_SECONDS
    for number in range(batches):
        for name in NAMES:
            send(name)
            while len(seconds[name]) <= number and thread.is_alive():
                if time.monotonic() > deadline:
                    raise TimeoutError(name)
                time.sleep(0.02)
            print(name, seconds[name][-1:], flush=True)
    stop.set()
    thread.join()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chance, stop = random.Random(1), threading.Event()
    graph = verified(application().graph)
    with tempfile.TemporaryDirectory() as home, temporary_broker() as broker:
        connection = broker.connection
        declare_application(graph, connection)
        rows = (
            {"device": f"d{each}", "owner": f"owner {each % 1000}", "site": f"site {each % 97}"}
            for each in range(options.rows)
        )
        fill(connection.bootstrap, "devices", rows)

        def send(name: str) -> None:
            values = (
                {"device": f"d{chance.randrange(options.rows)}", "celsius": 20.5}
                for _ in range(options.records)
            )
            fill(connection.bootstrap, f"readings_{name}", values)

        site = Site(
            settings=Settings(),
            places=Places(Path(home)),
            connection=connection,
            stop=stop,
            report=lambda _: None,
        )
        seconds = measure(graph, site, stop, send, options.batches)
    figures: dict[str, Any] = {"rows": options.rows, "records": options.records}
    for name, each in seconds.items():
        figures[name] = {"first": each[0], "median": statistics.median(each[2:]), "all": each}
    figures["ratio"] = figures["beside"]["median"] / figures["without"]["median"]
    print(json.dumps(figures, indent=1))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
