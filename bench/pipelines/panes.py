"""Windowed aggregations side by side on one Spark, one broker and the same records.

    python bench/pipelines/panes.py [--records 2500000] [--rounds 3] [--json FILE]

A hand-written PySpark window, tuned as well as we know how, is the measure of all. Speed is that of
the batches after the first, which pays for warming up. Each contender reads everything there is
(``availableNow``) and writes JSON to Kafka.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import confluent_kafka
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock import (
    App,
    after_count,
    count,
    every_record,
    fixed,
    mean,
    on_watermark,
    record,
    retracting,
)
from penstock.backbone.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.site import Site
from penstock.core.graph import Graph, Pipeline
from penstock.core.settings import Settings
from penstock.machine.places import Places
from penstock.pipelines.history import Histories
from penstock.pipelines.plan import pane_rows
from penstock.pipelines.reading import FETCHING, kafka_options
from penstock.pipelines.session import session, shuffle_partitions
from penstock.pipelines.sinks import rows_writer
from penstock.testing.broker import temporary_broker

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = timedelta(seconds=10)
BATCHES = 5
"""How many batches a run has; the first is not measured."""


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float
    site: str


@dataclass(frozen=True)
class Load:
    """How many records, of how many keys, over how many windows."""

    records: int = 2_500_000
    keys: int = 1_000
    windows: int = 20


@dataclass
class Ground:
    """The broker, the session and the application that all contenders share."""

    graph: Graph
    site: Site
    spark: SparkSession
    home: Path
    per_batch: int
    runs: int = 0

    def run(self, rows: DataFrame, mode: str) -> tuple[float, int]:
        """Send everything through a query; return records per second and batches measured."""
        self.runs += 1
        writer = rows_writer(rows, self.site).outputMode(mode)
        writer = writer.option("checkpointLocation", str(self.home / f"checkpoint{self.runs}"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        done = [each for each in query.recentProgress if each.numInputRows][1:]
        spent = sum(each.durationMs["triggerExecution"] for each in done) / 1000
        return sum(each.numInputRows for each in done) / spent, len(done)


def declared(load: Load) -> App:
    app = App("bench")
    readings = app.stream("readings", Reading, partitions=2, disorder="2s", follows="newest")
    windowed = readings.window(fixed("10s"), by="device", lateness="1m")
    results = {"celsius": mean("celsius"), "readings": count()}
    app.stream("native", windowed.trigger(on_watermark()).aggregate(**results))
    early = max(1, load.records // (load.keys * load.windows * 2))
    trigger = on_watermark(early=after_count(early), late=every_record())
    app.stream("panes", windowed.trigger(trigger).accumulate(retracting).aggregate(**results))
    return app


def by_hand(ground: Ground) -> tuple[DataFrame, str]:
    """The window as PySpark's own documentation has it, with every option that helps."""
    options = kafka_options(ground.site.connection) | dict(FETCHING)
    rows = ground.spark.readStream.format("kafka").options(
        subscribe="readings",
        startingOffsets="earliest",
        maxOffsetsPerTrigger=str(ground.per_batch),
        **options,
    )
    fields = "device string, at timestamp, celsius double, site string"
    readings = rows.load().select(F.from_json(F.col("value").cast("string"), fields).alias("r"))
    windows = (
        readings.select("r.*")
        .withWatermark("at", "2 seconds")
        .groupBy("device", F.window("at", "10 seconds"))
        .agg(F.avg("celsius").alias("celsius"), F.count("*").alias("readings"))
    )
    result = F.struct("device", "window.start", "window.end", "celsius", "readings")
    output = windows.select(
        F.lit("native").alias("topic"),
        F.col("device").cast("binary").alias("key"),
        F.to_json(result).cast("binary").alias("value"),
    )
    return output, "append"


def penstock(name: str) -> Callable[[Ground], tuple[DataFrame, str]]:
    def rows(ground: Ground) -> tuple[DataFrame, str]:
        part = ground.graph.part(f"{name}.windows")
        if not isinstance(part, Pipeline):
            raise TypeError(name)
        places = Places(ground.home / f"places{ground.runs}")
        site = Site(
            settings=ground.site.settings,
            places=places,
            connection=ground.site.connection,
            stop=threading.Event(),
            report=lambda _: None,
        )
        buckets = shuffle_partitions(ground.spark)
        inputs = Histories(ground.graph, part, site, ground.spark, checkpoint=str(places.home))
        found = pane_rows(ground.graph, part, inputs, buckets=buckets, per_batch=ground.per_batch)
        return found, "append"

    return rows


CONTENDERS: dict[str, Callable[[Ground], tuple[DataFrame, str]]] = {
    "by hand": by_hand,
    "native": penstock("native"),
    "panes": penstock("panes"),
}


def fill(connection: Connection, load: Load) -> None:
    """Write the readings: event time goes on, with some disorder."""
    producer = confluent_kafka.Producer(
        connection.client_config() | {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    chance = random.Random(7)
    span = WINDOW * load.windows / load.records
    for number in range(load.records):
        at = START_AT + span * number - timedelta(seconds=chance.random())
        shown = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        key = f"device-{chance.randrange(load.keys)}"
        value = (
            f'{{"device":"{key}","at":"{shown}",'
            f'"celsius":{chance.random() * 40:.2f},"site":"north"}}'
        )
        while True:
            try:
                producer.produce("readings", value.encode(), key.encode())
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


@contextmanager
def prepared(load: Load) -> Iterator[Ground]:
    graph = declared(load).graph.verified()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as home,
        temporary_broker() as broker,
    ):
        connection = Connection(broker.bootstrap, broker.settings)
        declare_application(graph, connection)
        fill(connection, load)
        places = Places(Path(home))
        site = Site(
            settings=Settings(),
            places=places,
            connection=connection,
            stop=threading.Event(),
            report=lambda _: None,
        )
        with session(site.settings, places, name="bench") as spark:
            yield Ground(graph, site, spark, Path(home), load.records // BATCHES)


def measure(load: Load, rounds: int, names: list[str]) -> dict[str, Any]:
    speeds: dict[str, list[float]] = {name: [] for name in names}
    with prepared(load) as ground:
        for number in range(rounds):
            for name in names:
                speed, batches = ground.run(*CONTENDERS[name](ground))
                speeds[name].append(speed)
                print(f"round {number}  {name:8} {speed:10,.0f} records/s  ({batches} batches)")
    return {name: statistics.median(found) for name, found in speeds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=Load().records)
    parser.add_argument("--keys", type=int, default=Load().keys)
    parser.add_argument("--windows", type=int, default=Load().windows)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load = Load(options.records, options.keys, options.windows)
    found = measure(load, options.rounds, options.only)
    for name, speed in found.items():
        print(f"{name:8} {speed:10,.0f} records/s  {speed / next(iter(found.values())):.2f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
