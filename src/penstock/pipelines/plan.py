"""One pipeline on Spark: its inputs, its function, its output, as a query that can be started."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.backbone.site import Site
from penstock.core.graph import Data, Graph, Lake, OnLog, Pipeline, RealTime, Table
from penstock.errors import DefinitionError, Problem
from penstock.pipelines.failures import of_definition
from penstock.pipelines.kept import identity_of, kept_pieces
from penstock.pipelines.laketable import lake_path, lake_rows
from penstock.pipelines.reading import (
    RECORDS_PER_BATCH,
    latest_records,
    observed_name,
    records,
    table_rows,
    topic_rows,
)
from penstock.pipelines.rollups.native import native_panes, why_not_native
from penstock.pipelines.rollups.plan import streamed_panes
from penstock.pipelines.sinks import once_writer, stream_writer
from penstock.pipelines.writers import refuse_other_checkpoint
from penstock.pipelines.writing import log_rows, typed

__all__ = ["checkpoint_of", "held_slots", "output_of", "pane_rows", "prepared_query", "start_query"]


def held_slots(pipeline: Pipeline) -> int:
    """Return how many slots a pipeline keeps: in real-time mode one for each partition it reads."""
    if not isinstance(pipeline.trigger, RealTime):
        return 0
    lookups = pipeline.lookups
    return sum(
        data.topic.partitions
        for data in pipeline.reads
        if not isinstance(data, Lake) and data not in lookups
    )


def checkpoint_of(graph: Graph, pipeline: Pipeline, site: Site) -> str:
    """Return where a pipeline's progress and state are kept."""
    root = site.settings.spark.checkpoint_dir or str(site.places.checkpoints)
    return f"{root.rstrip('/')}/{graph.app}/{pipeline.name}"


def output_of(pipeline: Pipeline, frame_of: Callable[[Data], DataFrame]) -> DataFrame:
    """Call the user's function with a frame for each input; return its typed output.

    Raises DefinitionError with the line that is wrong, or every column that does not fit.
    """
    try:
        # By its name an input is known again in the plan.
        inputs = (frame_of(data).alias(data.name) for data in pipeline.reads)
        result = pipeline.function(*inputs)
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
    """Start the pipeline as a stream, from where its checkpoint stands."""
    return prepared_query(graph, pipeline, site, spark)()


def prepared_query(
    graph: Graph, pipeline: Pipeline, site: Site, spark: SparkSession, *, lossy: bool = False
) -> Callable[[], StreamingQuery]:
    """Return what starts the pipeline; so far nothing was touched but a checkpoint of its own.

    ``lossy``: what is gone from its topics is stepped over; else that ends the query.

    Raises DefinitionError where it is wrong, ConfigurationError where its checkpoint is another's.
    """
    real_time = isinstance(pipeline.trigger, RealTime)
    lookups = pipeline.lookups

    def frame_of(data: Data) -> DataFrame:
        if isinstance(data, Lake):
            path, streaming = lake_path(data.name, site), data not in lookups
            return lake_rows(spark, data, path, streaming=streaming)
        if isinstance(data, Table) and data in lookups:
            return latest_records(table_rows(spark, site.connection, data.topic.name), data)
        limit = None if real_time else RECORDS_PER_BATCH
        topic = data.topic.name
        rows = topic_rows(spark, site.connection, topic, per_batch=limit, lossy=lossy)
        observed = None if real_time else observed_name(pipeline.name, data)
        return records(rows, data, observed=observed)

    try:
        name, into = f"{graph.app}.{pipeline.name}", pipeline.writes
        checkpoint = checkpoint_of(graph, pipeline, site)
        output = None if pipeline.aggregation else output_of(pipeline, frame_of)
        now = identity_of(pipeline, spark, output)
        pieces = kept_pieces(spark, checkpoint, pipeline, now)
        if output is None:
            # Panes come from the partitions of the state, which never change.
            rows = pane_rows(graph, pipeline, site, spark, buckets=pieces, lossy=lossy)
            writer = once_writer(rows, _on_log(pipeline), site, name=name, tasks=None)
        elif isinstance(into, Lake) or real_time:
            if isinstance(into, Lake):
                path = lake_path(into.name, site)
                refuse_other_checkpoint(spark, pipeline, into, path, checkpoint=checkpoint)
            writer = stream_writer(output, into, site)
        else:
            rows = log_rows(output, into)
            writer = once_writer(rows, into, site, name=name, tasks=pieces)
        writer = writer.queryName(name).option("checkpointLocation", checkpoint)
    except Exception as error:
        raise of_definition(error, pipeline) from error
    return partial(_start, _triggered(writer, pipeline), pipeline, spark)


def _start(writer: Any, pipeline: Pipeline, spark: SparkSession) -> StreamingQuery:
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pipeline.name)
    try:
        query: StreamingQuery = writer.start()
    except Exception as error:
        raise of_definition(error, pipeline) from error
    return query


def pane_rows(
    graph: Graph,
    pipeline: Pipeline,
    site: Site,
    spark: SparkSession,
    *,
    buckets: int,
    per_batch: int = RECORDS_PER_BATCH,
    lossy: bool = False,
) -> DataFrame:
    """Return the records that a windowed aggregation writes, late ones included.

    Its state is cut into so many ``buckets``, for as long as it has a checkpoint.
    """
    (data,), into = pipeline.reads, _on_log(pipeline)
    if isinstance(data, Lake):
        raise TypeError(f"{pipeline.name}: windows are over streams")
    topic = data.topic.name
    rows = topic_rows(spark, site.connection, topic, per_batch=per_batch, lossy=lossy)
    observed = observed_name(pipeline.name, data)
    if not why_not_native(pipeline):
        return native_panes(rows, data, pipeline, into=into, observed=observed)
    return streamed_panes(rows, graph, pipeline, buckets=buckets, observed=observed)


def _on_log(pipeline: Pipeline) -> OnLog:
    if isinstance(pipeline.writes, Lake):
        raise TypeError(f"{pipeline.name}: windows give streams and tables")
    return pipeline.writes


def _triggered(writer: Any, pipeline: Pipeline) -> Any:
    trigger = pipeline.trigger
    if isinstance(trigger, RealTime):
        # Real-time mode knows no other output mode; for a plan without state it is append.
        span = f"{round(trigger.checkpoint_every.total_seconds() * 1000)} milliseconds"
        return writer.outputMode("update").trigger(realTime=span)
    span = f"{round(trigger.every.total_seconds() * 1000)} milliseconds"
    return writer.outputMode(pipeline.output).trigger(processingTime=span)
