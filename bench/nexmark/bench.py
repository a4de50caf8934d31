"""How many events a second each Nexmark query takes, per core, from Kafka to Kafka on Spark.

    python bench/nexmark/bench.py [--events 3000000] [--file EVENTS.jsonl] [--only q0 q5 ...]
                                  [--markdown FILE] [--json FILE] [--once]

Every query reads the same topic, from its beginning to its end, in batches of a sixth of the
events. Speed is that of the batches after the first two, which pay for warming up; all else counts:
reading and checking JSON, state on RocksDB, checkpoints, the exactly-once output. A query upon
another's output (q4, q6) is given the time of both. Events come neither late nor twice, and are not
looked at for it, as in the originals; ``--once`` adds that.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from feed import open_feed
from generator import event_lines
from nexmark import FED_BY, QUERIES, nexmark
from pyspark.sql import DataFrame, SparkSession
from run import fill_side_input, spark_session

from penstock.backbone.declare import declare_application
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Data, Lake
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.rules.check import verified
from penstock.core.settings.settings import Settings
from penstock.machine.places import Places
from penstock.pipelines.execution.plan import output_of
from penstock.pipelines.gate.reading import observed_name, records, topic_rows
from penstock.pipelines.lake.table import lake_path, lake_rows
from penstock.pipelines.sink.destination import once_writer, stream_writer
from penstock.pipelines.sink.rows import log_rows
from penstock.pipelines.spark.session import shuffle_partitions
from penstock.testing.broker import temporary_broker

BATCHES, WARMING = 6, 2
DISORDER = "2s"
"""Nothing comes late here; windows and auctions close while the speed is measured."""
FLINK = {
    "q0": 155_000,
    "q1": 158_000,
    "q2": 175_000,
    "q3": 152_000,
    "q4": 34_000,
    "q5": 22_000,
    "q7": 12_000,
    "q8": 146_000,
    "q9": 14_000,
    "q11": 40_000,
    "q13": 131_000,
    "q15": 72_000,
    "q16": 19_000,
    "q17": 117_000,
    "q18": 54_000,
    "q19": 44_000,
    "q20": 19_000,
}
"""Events a second per core that the Flink project has published, from its own machines."""


@dataclass
class Ground:
    """The broker, the session and the events that all queries share."""

    graph: Graph
    site: Site
    spark: SparkSession
    events: int
    seconds: dict[str, float] = field(default_factory=dict)

    def speed(self, query: str) -> float:
        """Return how many events a second a query takes on each core."""
        chain = [FED_BY[query], query] if query in FED_BY else [query]
        return self.events / sum(map(self._measured, chain)) / cores()

    def _measured(self, name: str) -> float:
        """Return the seconds for all events at the speed after warming up."""
        if name not in self.seconds:
            part = self.graph.part(name)
            if not isinstance(part, Pipeline):
                raise TypeError(name)
            self.seconds[name] = self._run(part)
        return self.seconds[name]

    def _run(self, pipeline: Pipeline) -> float:
        checkpoint = str(self.site.places.checkpoints / pipeline.name)
        writer = self._writer(pipeline).option("checkpointLocation", checkpoint)
        query = writer.outputMode(pipeline.output).trigger(availableNow=True).start()
        query.awaitTermination()
        done = [each for each in query.recentProgress if each.numInputRows]
        if not done:
            return 0.0
        measured = done[WARMING:] or done
        spent = sum(each.durationMs["triggerExecution"] for each in measured) / 1000
        rows = sum(each.numInputRows for each in done)
        return spent * rows / sum(each.numInputRows for each in measured)

    def _writer(self, pipeline: Pipeline) -> Any:
        into = pipeline.writes
        output = output_of(pipeline, lambda data: self._frame(pipeline, data))
        if isinstance(into, Lake):
            return stream_writer(output, into, self.site)
        tasks = shuffle_partitions(self.spark)
        return once_writer(log_rows(output, into), into, self.site, name=pipeline.name, tasks=tasks)

    def _frame(self, pipeline: Pipeline, data: Data) -> DataFrame:
        if isinstance(data, Lake):
            path = lake_path(data.name, self.site)
            return lake_rows(self.spark, data, path, streaming=False)
        connection, topic = self.site.connection, data.topic.name
        count = sum(high - low for low, high in Topics(connection).ends(topic).values())
        rows = topic_rows(self.spark, connection, topic, per_batch=max(1, count // BATCHES))
        return records(rows, data, observed=observed_name(pipeline.name, data))


def cores() -> int:
    return len(os.sched_getaffinity(0))


@contextmanager
def prepared(file: Path, *, once: bool) -> Iterator[Ground]:
    graph = verified(nexmark(partitions=cores(), disorder=DISORDER, once=once).graph)
    with (
        tempfile.TemporaryDirectory(prefix="penstock-nexmark-") as home,
        temporary_broker() as broker,
        spark_session() as spark,
        open_feed(broker.connection, graph, file) as feed,
    ):
        declare_application(graph, broker.connection)
        feed.send()
        site = Site(
            settings=Settings(),
            places=Places(Path(home)),
            connection=broker.connection,
            stop=threading.Event(),
            report=lambda _: None,
        )
        fill_side_input(spark, site)
        yield Ground(graph, site, spark, feed.count)


@contextmanager
def events_file(given: Path | None, count: int) -> Iterator[Path]:
    """Give a file of events: the one that is named, made where it is not there yet."""
    with tempfile.TemporaryDirectory(prefix="penstock-nexmark-") as directory:
        file = given or Path(directory) / "events.jsonl"
        if not file.exists():
            unfinished = file.with_name(f"{file.name}.part")
            with unfinished.open("w", encoding="utf-8") as lines:
                lines.writelines(event_lines(count))
            unfinished.rename(file)
        yield file


def table(speeds: dict[str, float], *, events: int) -> str:
    """Return the speeds as a Markdown table, beside what Flink has published."""
    lines = [
        f"{events:,} events, {cores()} cores, {datetime.now(UTC):%Y-%m-%d}.",
        "",
        "| query | Penstock on Spark, events/s per core | published for Flink |",
        "|---|---|---|",
    ]
    for query, speed in speeds.items():
        flink = f"{FLINK[query]:,}" if query in FLINK else ""
        lines.append(f"| {query} | {speed:,.0f} | {flink} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--file", type=Path, help="where the events are, or are to be kept")
    parser.add_argument("--only", nargs="*", choices=QUERIES, default=list(QUERIES))
    parser.add_argument("--once", action="store_true", help="look for events that come twice")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    speeds: dict[str, float] = {}
    with events_file(given.file, given.events) as file, prepared(file, once=given.once) as ground:
        for query in given.only:
            began = time.monotonic()
            speeds[query] = ground.speed(query)
            spent = time.monotonic() - began
            print(
                f"{query:4} {speeds[query]:10,.0f} events/s per core  ({spent:.0f} s)", flush=True
            )
        text = table(speeds, events=ground.events)
    print(text)
    print(f"median {statistics.median(speeds.values()):,.0f}")
    if given.markdown:
        given.markdown.write_text(text, encoding="utf-8")
    if given.json:
        given.json.write_text(json.dumps(speeds, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
