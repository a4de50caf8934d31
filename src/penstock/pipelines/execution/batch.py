"""Run a pipeline over a finished range: the same function, because a batch is a finite stream."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.backbone.log.positions import PositionStore
from penstock.backbone.log.producer import Producer
from penstock.backbone.site import Site
from penstock.backbone.topics.range import EARLIEST, LATEST, End, Start
from penstock.backbone.topics.span import settled_range
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Archive, Data, Lake, OnLog, Stream, Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.status.report import Counts
from penstock.core.topic import TopicSpec
from penstock.core.wiring.lookup import find_part
from penstock.pipelines.execution.plan import output_of
from penstock.pipelines.gate.gate import refused
from penstock.pipelines.gate.reading import (
    DELETIONS,
    RECEIVED,
    REJECTED,
    OffsetRange,
    gate_counts,
    latest_records,
    records,
    topic_rows,
)
from penstock.pipelines.gate.sweeper import dead_letter
from penstock.pipelines.history.archive import archive_rows
from penstock.pipelines.history.range import PastRange
from penstock.pipelines.lake.table import lake_path, lake_rows, stored_rows
from penstock.pipelines.operators.plan import final_results
from penstock.pipelines.rollups.plan import finished_panes
from penstock.pipelines.sink.kafkatask import Output, task_name
from penstock.pipelines.sink.rangetask import WRITTEN, RangeTask
from penstock.pipelines.sink.rows import log_rows
from penstock.pipelines.spark.failures import of_query
from penstock.pipelines.spark.session import session
from penstock.pipelines.spark.taskcount import tasks_told

__all__ = ["BatchResult", "run_batch"]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a run over a range: where the output is, and the counts."""

    result: str
    """The topic or lake table that took the output."""
    dead_letters: str
    counts: Counts


def run_batch(
    graph: Graph,
    name: str,
    site: Site,
    *,
    start: Start = EARLIEST,
    end: End = LATEST,
    label: str,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> BatchResult:
    """Run a pipeline over a range of its input, into ``<output>.replay.<label>``.

    The range is fixed at the start, so later records are not part of it. A table's output holds one
    row per key: the final state that the stream would have reached. A looked-up table is read as it
    is at the end of the range, a lake table as it is now. Dead letters also go to a separate topic.
    ``progress`` gets how many tasks of Spark are done, of those it knows of.
    """
    pipeline = find_part(graph, name, Pipeline)
    letters = replace(graph.dead_letters, name=f"{graph.dead_letters.name}.replay.{label}")
    output = f"{pipeline.writes.name}.replay.{label}"
    late = replace(graph.late_records, name=f"{graph.late_records.name}.replay.{label}")
    topics = Topics(site.connection)
    specs = [letters, late] if pipeline.has_late_records else [letters]
    if not isinstance(pipeline.writes, Lake):
        specs.append(replace(pipeline.writes.topic, name=output))
    topics.declare(specs)
    ranges = {
        data.topic.name: settled_range(
            topics,
            data.topic.name,
            start=EARLIEST if _is_whole(pipeline, data) else start,
            end=end,
        )
        for data in pipeline.reads
        if not isinstance(data, Lake)
    }
    with session(site.settings, site.places, name=f"{graph.app}.{name}.replay") as spark:
        try:
            with tasks_told(spark, progress):
                past = {
                    data.name: PastRange.settled(
                        graph, data.archive, site, spark, start=start, end=end
                    )
                    for data in pipeline.reads
                    if data.archive is not None
                }
                run = _Batch(graph, pipeline, site, spark, ranges, past=past, letters=letters.name)
                if pipeline.declared:
                    written = run.write_computed(output, late.name)
                else:
                    written = run.write(output)
                buried = sum(run.bury(data, letters) for data in run.with_rejected())
        except (PySparkException, Py4JError) as error:
            raise of_query(error, pipeline) from error
        return BatchResult(output, letters.name, run.counts(written=written, buried=buried))


def _is_whole(pipeline: Pipeline, data: Data) -> bool:
    """Whether an input is read from its beginning: rows of tables hold from before the range."""
    beside = any(isinstance(each, Stream) for each in pipeline.reads)
    return data in pipeline.lookups or (beside and isinstance(data, Table) and pipeline.declared)


class _Batch:
    """One run. Its gate is counted in a pass of its own before anything is written."""

    def __init__(
        self,
        graph: Graph,
        pipeline: Pipeline,
        site: Site,
        spark: SparkSession,
        ranges: Mapping[str, OffsetRange],
        *,
        past: Mapping[str, PastRange],
        letters: str,
    ) -> None:
        self._letters = letters
        self._graph = graph
        self._pipeline = pipeline
        self._site = site
        self._spark = spark
        self._ranges = ranges
        self._past = past
        self._counted = {
            data.name: self._gate_counts(data)
            for data in pipeline.reads
            if not isinstance(data, Lake)
        }

    def write(self, output: str) -> int:
        """Compute the output and write it; return how many rows it has."""
        frame = output_of(self._pipeline, self._frame_of)
        data = self._pipeline.writes
        if isinstance(data, Lake):
            path = lake_path(output, self._site)
            writer: Any = stored_rows(frame, data).write.format("delta").mode("errorifexists")
            writer.partitionBy(*data.partition_columns).save(path)
            return self._spark.read.format("delta").load(path).count()
        return self._write_once(log_rows(frame, data), data, output)

    def write_computed(self, output: str, late: str) -> int:
        """Compute the final panes or results of what was declared; return how many there are."""
        if self._pipeline.operator is not None:
            return self._write_results(output, late)
        (data,) = self._pipeline.reads
        if isinstance(data, Lake):
            raise TypeError(f"{self._pipeline.name}: windows are over streams")
        panes = finished_panes(
            self._rows(data), self._graph, self._pipeline, into=output, late=late
        )
        return self._write_once(panes, data, output)

    def _write_results(self, output: str, late: str) -> int:
        rows = {data.name: self._rows(data) for data in self._pipeline.followed}
        into, letters = self._pipeline.writes, self._letters
        if isinstance(into, Lake):
            raise TypeError(f"{self._pipeline.name}: results go to streams and tables")
        results = final_results(
            rows, self._graph, self._pipeline, into=output, late=late, letters=letters
        )
        return self._write_once(results, into, output)

    def _write_once(self, rows: DataFrame, data: OnLog, output: str) -> int:
        """Write rows to a topic, each once even if Spark repeats a task; return how many."""
        name = f"{self._graph.app}.{self._pipeline.name}.replay.{uuid4().hex}"
        connection = self._site.connection
        into = Output(connection, name, output, data.topic.partitioning)
        task = RangeTask(into, beside=self._letters)
        written = rows.mapInArrow(task, f"{WRITTEN} long").collect()
        store = PositionStore(connection)
        for number in range(len(written)):
            store.forget(task_name(name, number))
        return sum(row[WRITTEN] for row in written)

    def with_rejected(self) -> list[OnLog]:
        """Return the inputs that hold dead letters."""
        return [
            data
            for data in self._pipeline.reads
            if not isinstance(data, Lake) and self._counted[data.name][REJECTED]
        ]

    def bury(self, data: OnLog, letters: TopicSpec) -> int:
        """Write an input's dead letters; return how many."""
        count = 0
        with Producer(self._site.connection) as producer:
            for row in refused(self._rows(data), data).toLocalIterator():
                producer.send(letters.name, **dead_letter(row, data, part=self._pipeline.name))
                count += 1
        return count

    def counts(self, *, written: int, buried: int) -> Counts:
        """Return what was counted, the same as for a stream."""
        received, rejected, deletions = (
            sum(found[each] for found in self._counted.values())
            for each in (RECEIVED, REJECTED, DELETIONS)
        )
        return Counts(
            received=received,
            passed=received - rejected - deletions,
            filtered=deletions,
            dead_lettered=buried,
            in_flight=rejected - buried,
            written=written,
        )

    def _gate_counts(self, data: OnLog) -> dict[str, int]:
        found = gate_counts(self._rows(data), data)
        if data in self._pipeline.lookups:
            # What is looked up is not received, but what of it cannot be used is a dead letter.
            return found | {RECEIVED: found[REJECTED], DELETIONS: 0}
        return found

    def _rows(self, data: OnLog) -> DataFrame:
        if data.archive is not None:
            return self._past[data.name].rows(self._site, self._spark)
        over = self._ranges[data.topic.name]
        return topic_rows(self._spark, self._site.connection, data.topic.name, over=over)

    def _frame_of(self, data: Data) -> DataFrame:
        if isinstance(data, Lake):
            return lake_rows(self._spark, data, lake_path(data.name, self._site), streaming=False)
        if isinstance(data, Table) and data in self._pipeline.lookups:
            return latest_records(self._rows(data), data)
        if isinstance(self._pipeline.writes, Archive):
            return archive_rows(self._rows(data), self._pipeline.writes.stream)
        return records(self._rows(data), data)
