"""What benchmarks of pipelines share: a broker with readings, a Spark, how a query is timed."""

import random
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import confluent_kafka
import psutil
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock import App, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Settings
from penstock.machine.places import Places
from penstock.pipelines.execution.plan import pane_rows
from penstock.pipelines.gate.reading import topic_rows
from penstock.pipelines.history.history import Histories
from penstock.pipelines.spark.session import session, shuffle_partitions
from penstock.testing.broker import temporary_broker

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW = timedelta(seconds=10)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float
    site: str


READING_FIELDS = "device string, at timestamp, celsius double, site string"


@dataclass(frozen=True)
class Load:
    """How many records, of how many keys, over how many windows."""

    records: int = 2_500_000
    keys: int = 1_000
    windows: int = 20


@dataclass(frozen=True)
class Timed:
    """One query over all there is: how long it took, what it burnt, and its batches."""

    seconds: float
    cpu_seconds: float
    batches: list[Any] = field(default_factory=list)

    @property
    def speed(self) -> float:
        """Records per second of the batches after the first, which pays for warming up."""
        done = self.batches[1:]
        spent = sum(each.durationMs["triggerExecution"] for each in done) / 1000
        return float(sum(each.numInputRows for each in done) / spent)


@dataclass
class Ground:
    """The broker, the session and the application that all contenders share."""

    graph: Graph
    site: Site
    spark: SparkSession
    home: Path
    runs: int = 0

    def checkpoint(self) -> str:
        """Return a directory for the checkpoint of the next query."""
        self.runs += 1
        return str(self.home / f"checkpoint{self.runs}")

    def run(self, writer: Any, checkpoint: str) -> Timed:
        """Send everything there is through a query."""
        burnt, began = self.cpu_seconds(), time.perf_counter()
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        seconds, cpu = time.perf_counter() - began, self.cpu_seconds() - burnt
        return Timed(seconds, cpu, [each for each in query.recentProgress if each.numInputRows])

    def discard(self, rows: DataFrame) -> Timed:
        """Send everything there is through a query whose rows are computed and thrown away."""
        return self.run(rows.writeStream.format("noop").outputMode("append"), self.checkpoint())

    def part(self, name: str) -> Pipeline:
        """Return a pipeline of the application."""
        part = self.graph.part(name)
        if not isinstance(part, Pipeline):
            raise TypeError(name)
        return part

    def topic(self, name: str, *, per_batch: int) -> DataFrame:
        """Return a topic as Penstock reads it, with every option that helps."""
        return topic_rows(self.spark, self.site.connection, name, per_batch=per_batch)

    def panes(self, name: str, *, per_batch: int) -> DataFrame:
        """Return what a windowed aggregation writes, by the plan that a pipeline runs."""
        part, spark = self.part(name), self.spark
        inputs = Histories(self.graph, part, self.site, spark, checkpoint=self.checkpoint())
        buckets = shuffle_partitions(spark)
        return pane_rows(self.graph, part, inputs, buckets=buckets, per_batch=per_batch)

    def cpu_seconds(self) -> float:
        """Return what Spark's JVM and its Python workers have burnt so far."""
        return burnt_by(spark_process())


def spark_process() -> int:
    """Return the process id of this process's JVM."""
    jvm: Any = SparkContext._jvm  # noqa: SLF001 - there is no public way
    return int(jvm.java.lang.ProcessHandle.current().pid())


def burnt_by(pid: int) -> float:
    """Return the seconds of processor time of a process and all it has started."""
    found = psutil.Process(pid)
    times = [each.cpu_times() for each in (found, *found.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))


def by_hand(rows: DataFrame) -> DataFrame:
    """Read the readings as PySpark's own documentation does."""
    parsed = F.from_json(F.col("value").cast("string"), READING_FIELDS)
    return rows.select(parsed.alias("r")).select("r.*")


def windows_by_hand(rows: DataFrame) -> DataFrame:
    """Aggregate the readings as PySpark's own documentation does."""
    return (
        by_hand(rows)
        .withWatermark("at", "2 seconds")
        .groupBy("device", F.window("at", "10 seconds"))
        .agg(F.avg("celsius").alias("celsius"), F.count("*").alias("readings"))
    )


def readings_of(load: Load) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values of readings: event time goes on, with some disorder."""
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
        yield key.encode(), value.encode()


def fill(connection: Connection, topic: str, pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Write keys and values to a topic, as fast as one producer can."""
    producer = confluent_kafka.Producer(
        connection.client_config() | {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    for key, value in pairs:
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.05)
    producer.flush()


@contextmanager
def declared(app: App) -> Iterator[Connection]:
    """Give a broker that has the application's topics."""
    with temporary_broker() as broker:
        declare_application(verified(app.graph), broker.connection)
        yield broker.connection


@contextmanager
def sparked(
    app: App,
    connection: Connection,
    *,
    master: str | None = None,
    driver_memory: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Iterator[Ground]:
    """Give a Spark session on that broker, with Penstock's settings and what differs from them."""
    given = {"master": master, "driver_memory": driver_memory, "options": options}
    wanted = {name: value for name, value in given.items() if value is not None}
    settings = Settings()
    settings = replace(settings, spark=replace(settings.spark, **wanted))  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
        site = Site(
            settings=settings,
            places=Places(Path(home)),
            connection=connection,
            stop=threading.Event(),
            report=lambda _: None,
        )
        with session(settings, site.places, name="bench") as spark:
            yield Ground(verified(app.graph), site, spark, Path(home))
