"""The exactly-once sink beside Spark's own Kafka sink: one Spark, one broker, the same pipeline.

    python bench/pipelines/sink.py [--records 2000000] [--rounds 3] [--json FILE]

Each contender reads every record there is (``availableNow``), decodes it, checks and encodes its
output and writes it to Kafka. Speed is that of the batches after the first, which pays for warming
up.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
from pyspark.sql import DataFrame, SparkSession

from penstock import App, record
from penstock.backbone.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.site import Site
from penstock.core.graph import Graph, Pipeline
from penstock.core.settings import Settings
from penstock.machine.places import Places
from penstock.pipelines.plan import output_of
from penstock.pipelines.reading import records, topic_rows
from penstock.pipelines.session import session, shuffle_partitions
from penstock.pipelines.sinks import once_writer, stream_writer
from penstock.pipelines.writing import log_rows
from penstock.testing.broker import temporary_broker

BATCH = 500_000


@record(key="device")
class Reading:
    device: str
    celsius: float
    site: str
    level: int


app = App("bench")
readings = app.stream("readings", Reading, partitions=2)
copies = app.stream("copies", Reading, partitions=2)


@app.pipeline(reads=readings, writes=copies)
def copied(readings: DataFrame) -> DataFrame:
    return readings


@dataclass
class Ground:
    """The broker and the session that both contenders share."""

    graph: Graph
    site: Site
    spark: SparkSession
    home: Path
    runs: int = 0

    def run(self, sink: Callable[[DataFrame, "Ground", str], Any], *, per_batch: int) -> list[Any]:
        """Send everything through a query; return the progress of its batches but the first."""
        self.runs += 1
        checkpoint = str(self.home / f"checkpoint{self.runs}")

        def frame(data: Any) -> DataFrame:
            rows = topic_rows(
                self.spark, self.site.connection, data.topic.name, per_batch=per_batch
            )
            return records(rows, data)

        part = self.graph.part("copied")
        if not isinstance(part, Pipeline):
            raise TypeError("copied")
        writer = sink(output_of(part, frame), self, checkpoint)
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        return [each for each in query.recentProgress if each.numInputRows][1:]


def spark_sink(output: DataFrame, ground: Ground, _checkpoint: str) -> Any:
    return stream_writer(output, copies, ground.site)


def once_sink(output: DataFrame, ground: Ground, _checkpoint: str) -> Any:
    tasks = shuffle_partitions(ground.spark)
    return once_writer(log_rows(output, copies), copies, ground.site, "bench", tasks=tasks)


SINKS = {"Spark's own": spark_sink, "exactly once": once_sink}


def fill(connection: Connection, count: int) -> None:
    producer = confluent_kafka.Producer(
        connection.client_config() | {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    for number in range(count):
        key = f"device-{number % 1000}"
        value = (
            f'{{"device":"{key}","celsius":{number % 4000 / 100},"site":"north","level":{number}}}'
        )
        while True:
            try:
                producer.produce(readings.topic.name, value.encode(), key.encode())
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


@contextmanager
def prepared(count: int) -> Iterator[Ground]:
    graph = app.graph.verified()
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as home,
        temporary_broker() as broker,
    ):
        declare_application(graph, broker.connection)
        fill(broker.connection, count)
        site = Site(
            settings=Settings(),
            places=Places(Path(home)),
            connection=broker.connection,
            stop=threading.Event(),
            report=lambda _: None,
        )
        with session(site.settings, site.places, name="bench") as spark:
            yield Ground(graph, site, spark, Path(home))


def measure(count: int, rounds: int) -> dict[str, dict[str, float]]:
    speeds: dict[str, list[float]] = {name: [] for name in SINKS}
    with prepared(count) as ground:
        for number in range(rounds):
            for name, sink in SINKS.items():
                done = ground.run(sink, per_batch=BATCH)
                spent = sum(each.durationMs["triggerExecution"] for each in done) / 1000
                speeds[name].append(sum(each.numInputRows for each in done) / spent)
                print(f"round {number}  {name:12} {speeds[name][-1]:10,.0f} records/s", flush=True)
    return {name: {"records/s": statistics.median(found)} for name, found in speeds.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measure(options.records, options.rounds)
    first = found["Spark's own"]["records/s"]
    for name, figures in found.items():
        speed = figures["records/s"]
        print(f"{name:12} {speed:10,.0f} records/s  {speed / first:.2f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
