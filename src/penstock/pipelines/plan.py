"""One pipeline on Spark: its inputs, its function, its output, as a query that can be started."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.backbone.site import Site
from penstock.core.graph import Archive, Data, Graph, Lake, Pipeline, RealTime
from penstock.core.rollup.resolve import rollup_of
from penstock.errors import DefinitionError, Problem
from penstock.pipelines.archive import archive_rows
from penstock.pipelines.checkpoint import checkpoint_at
from penstock.pipelines.failures import of_definition
from penstock.pipelines.history import CopyStopped, Histories
from penstock.pipelines.oncesink import kept_tasks
from penstock.pipelines.reading import (
    RECORDS_PER_BATCH,
    lake_rows,
    observed_name,
    records,
)
from penstock.pipelines.rollups.kept import kept_buckets
from penstock.pipelines.rollups.native import native_panes, why_not_native
from penstock.pipelines.rollups.plan import streamed_panes
from penstock.pipelines.sinks import lake_path, once_writer, stream_writer
from penstock.pipelines.writing import log_rows, typed

__all__ = ["checkpoint_of", "held_slots", "output_of", "pane_rows", "start_query"]


def held_slots(pipeline: Pipeline) -> int:
    """Return how many slots a pipeline keeps: in real-time mode one for each partition it reads."""
    if not isinstance(pipeline.trigger, RealTime):
        return 0
    return sum(data.topic.partitions for data in pipeline.reads if not isinstance(data, Lake))


def checkpoint_of(graph: Graph, pipeline: Pipeline, site: Site) -> str:
    """Return where a pipeline's progress and state are kept."""
    return checkpoint_at(graph, pipeline.name, site)


def output_of(pipeline: Pipeline, frame_of: Callable[[Data], DataFrame]) -> DataFrame:
    """Call the user's function with a frame for each input; return its typed output.

    Raises DefinitionError with the line that is wrong, or every column that does not fit.
    """
    if isinstance(pipeline.writes, Archive):
        (data,) = pipeline.reads
        return frame_of(data)
    try:
        result = pipeline.function(*(frame_of(data) for data in pipeline.reads))
    except Exception as error:
        raise of_definition(error, pipeline) from error
    if not isinstance(result, DataFrame):
        text = f"pipeline {pipeline.name!r} gives {type(result).__name__}, not a DataFrame"
        raise DefinitionError(
            (Problem("pipeline.gives", text, "return a DataFrame", pipeline.place),)
        )
    return typed(result, pipeline)


def start_query(
    graph: Graph, pipeline: Pipeline, site: Site, spark: SparkSession
) -> StreamingQuery:
    """Start the pipeline as a stream, from where its checkpoint stands.

    As long as it has a history that is not read, that alone is read, and it must be started again.
    """
    real_time = isinstance(pipeline.trigger, RealTime)
    # Beside a stream a lake table is looked up as it is at each batch; alone it is the stream.
    only_lake = all(isinstance(data, Lake) for data in pipeline.reads)

    def frame_of(data: Data) -> DataFrame:
        if isinstance(data, Lake):
            return lake_rows(spark, data, lake_path(data.name, site), streaming=only_lake)
        limit = None if real_time else RECORDS_PER_BATCH
        rows = histories.rows(data, per_batch=limit)
        observed = None if real_time else observed_name(pipeline.name, data)
        if isinstance(pipeline.writes, Archive):
            return archive_rows(rows, pipeline.writes.stream, observed=observed)
        return records(rows, data, observed=observed)

    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pipeline.name)
    try:
        histories = Histories(graph, pipeline, site, spark)
        histories.settle()
        name, into = f"{graph.app}.{pipeline.name}", pipeline.writes
        checkpoint = checkpoint_of(graph, pipeline, site)
        if isinstance(into, Lake) or real_time:
            writer = stream_writer(output_of(pipeline, frame_of), into, site)
        elif pipeline.aggregation:
            # Panes come from the partitions of the state, which never change.
            rows = pane_rows(graph, pipeline, site, spark, histories=histories)
            writer = once_writer(rows, into, site, name=name, tasks=None)
        else:
            rows = log_rows(output_of(pipeline, frame_of), into)
            tasks = kept_tasks(spark, checkpoint)
            writer = once_writer(rows, into, site, name=name, tasks=tasks)
        writer = writer.queryName(name).option("checkpointLocation", checkpoint)
        query: StreamingQuery = _triggered(writer, pipeline).start()
    except CopyStopped:
        raise
    except Exception as error:
        raise of_definition(error, pipeline) from error
    return query


def pane_rows(
    graph: Graph,
    pipeline: Pipeline,
    site: Site,
    spark: SparkSession,
    *,
    per_batch: int = RECORDS_PER_BATCH,
    histories: Histories | None = None,
) -> DataFrame:
    """Return the records that a windowed aggregation writes, late ones included."""
    (data,), into = pipeline.reads, pipeline.writes
    if isinstance(data, Lake) or isinstance(into, Lake):
        raise TypeError(f"{pipeline.name}: windows are over streams, into streams and tables")
    native = not why_not_native(pipeline)
    checkpoint, rollup = checkpoint_of(graph, pipeline, site), rollup_of(pipeline)
    buckets = kept_buckets(spark, checkpoint, pipeline.name, rollup, native=native)
    reading = histories or Histories(graph, pipeline, site, spark)
    rows = reading.rows(data, per_batch=per_batch)
    observed = observed_name(pipeline.name, data)
    if native:
        return native_panes(rows, data, pipeline, into=into, observed=observed)
    return streamed_panes(rows, graph, pipeline, buckets=buckets, observed=observed)


def _triggered(writer: Any, pipeline: Pipeline) -> Any:
    trigger = pipeline.trigger
    if isinstance(trigger, RealTime):
        # Real-time mode knows no other output mode; for a plan without state it is append.
        span = f"{round(trigger.checkpoint_every.total_seconds() * 1000)} milliseconds"
        return writer.outputMode("update").trigger(realTime=span)
    span = f"{round(trigger.every.total_seconds() * 1000)} milliseconds"
    return writer.outputMode(pipeline.output).trigger(processingTime=span)
