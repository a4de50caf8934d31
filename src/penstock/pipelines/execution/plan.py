"""Turn one pipeline (inputs, function, output) into a query that can be started."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from pyspark.sql.streaming.query import StreamingQuery

from penstock.backbone.site import Site
from penstock.core.graph.data import Archive, Data, Lake, OnLog, Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, RealTime
from penstock.errors import DefinitionError, Problem
from penstock.pipelines.checkpoint.batches import checkpoint_at, interrupted
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.checkpoint.generations import Generations
from penstock.pipelines.gate.reading import (
    RECORDS_PER_BATCH,
    latest_records,
    observed_name,
    records,
    table_rows,
    topic_rows,
)
from penstock.pipelines.history.archive import archive_rows
from penstock.pipelines.history.history import Histories
from penstock.pipelines.lake.table import lake_path, lake_rows
from penstock.pipelines.lake.writers import refuse_other_checkpoint
from penstock.pipelines.lookups.asking import Asking
from penstock.pipelines.lookups.batches import BatchLookups, side_by_side, tables_asked
from penstock.pipelines.lookups.beside import LookupsBesideState, asked_beside_state
from penstock.pipelines.lookups.finding import Finder, Tables
from penstock.pipelines.lookups.spool import Spool
from penstock.pipelines.operators.plan import remembers, streamed_results
from penstock.pipelines.program.checkpointfile import identity_of, kept_pieces
from penstock.pipelines.program.code import code_text
from penstock.pipelines.program.rewriting import refuse_unsupported
from penstock.pipelines.program.stateful import repeats_alike, state_aspects, steps_behind
from penstock.pipelines.rollups.native import native_panes, why_not_native
from penstock.pipelines.rollups.plan import streamed_panes
from penstock.pipelines.sink.begun import fingerprint
from penstock.pipelines.sink.continuity import begun_before
from penstock.pipelines.sink.destination import once_writer, stream_writer
from penstock.pipelines.sink.kafka import Continued, SinkHandle
from penstock.pipelines.sink.rows import log_rows, typed
from penstock.pipelines.spark.refusals import refusal

__all__ = [
    "Run",
    "checkpoint_of",
    "current_run",
    "held_slots",
    "output_of",
    "pane_rows",
    "prepared_query",
    "program_of",
]


def held_slots(pipeline: Pipeline) -> int:
    """Return how many slots a pipeline keeps: in real-time mode one for each partition it reads."""
    if not isinstance(pipeline.trigger, RealTime):
        return 0
    return sum(data.topic.partitions for data in pipeline.followed)


def checkpoint_of(graph: Graph, pipeline: Pipeline, site: Site) -> str:
    """Return where the first generation of a pipeline keeps its progress and state."""
    return checkpoint_at(graph, pipeline.name, site)


def output_of(pipeline: Pipeline, frame_of: Callable[[Data], DataFrame]) -> DataFrame:
    """Call the user's function with a frame for each input; return its typed output.

    Raises DefinitionError with the line that is wrong, or every column that does not fit.
    """
    if isinstance(pipeline.writes, Archive):
        (data,) = pipeline.reads
        return frame_of(data)
    try:
        # By its name an input is known again in the plan.
        inputs = (frame_of(data).alias(data.name) for data in pipeline.reads)
        result = pipeline.function(*inputs)
    except Exception as error:
        raise refusal(error, pipeline) from error
    if not isinstance(result, DataFrame):
        text = f"pipeline {pipeline.name!r} returns {type(result).__name__}, not a DataFrame"
        raise DefinitionError(
            (Problem("pipeline.gives", text, "return a DataFrame", pipeline.place),)
        )
    return typed(result, pipeline)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a pipeline: its name, its checkpoint, and its output."""

    pipeline: Pipeline
    name: str
    checkpoint: str
    into: Data
    guard: Callable[[], None] = lambda: None
    """Raises FencedError when this checkpoint is no longer the one to run from."""
    beside: bool = False
    """Whether it is a rebuild: it ends with its input, and writes no dead letters."""
    sink: SinkHandle = field(default_factory=SinkHandle)
    """Of its sink, where it writes topics exactly once."""
    tables: Tables = field(default_factory=Tables)
    """What it looks up by values."""


def current_run(graph: Graph, pipeline: Pipeline, site: Site, spark: SparkSession) -> Run:
    """Return the run that continues a pipeline; FencedError while a rebuild switches over."""
    base = checkpoint_of(graph, pipeline, site)
    checkpoint, guard = Generations(Files(spark), base, name=pipeline.name).running()
    return Run(
        pipeline=pipeline,
        name=f"{graph.app}.{pipeline.name}",
        checkpoint=checkpoint,
        into=pipeline.writes,
        guard=guard,
    )


def prepared_query(
    graph: Graph,
    run: Run,
    site: Site,
    spark: SparkSession,
    *,
    histories: Histories,
    lossy: bool = False,
) -> Callable[[], StreamingQuery]:
    """Return what starts a run; so far nothing was touched but a checkpoint of its own.

    ``lossy``: the query skips records that are gone from its topics; otherwise they end it. While
    one of its settled ``histories`` is unread, it reads only that, and must be started again.

    Raises DefinitionError if the pipeline is wrong, ConfigurationError if its checkpoint belongs to
    another one.
    """
    pipeline, real_time = run.pipeline, isinstance(run.pipeline.trigger, RealTime)
    try:
        written = replace(pipeline, writes=run.into)
        output = (
            None
            if pipeline.declared
            else output_of(written, _frames(written, site, spark, histories, lossy=lossy))
        )
        now = identity_of(pipeline, spark, output)
        pieces = kept_pieces(spark, run.checkpoint, pipeline, now)
        _refuse_other_checkpoint(run, site, spark)
        if isinstance(run.into, Lake) or real_time:
            writer = stream_writer(_given(output), run.into, site, at_once=real_time)
        else:
            past = _continued(run, run.into, site, spark, output)
            write = partial(once_writer, past=past, guard=run.guard, handle=run.sink)
            if output is None:
                rows = _computed_rows(graph, run, written, histories, buckets=pieces, lossy=lossy)
                # What comes from the partitions of the state stays there: these never change.
                kept = pipeline.plan is None or remembers(pipeline.plan)
                tasks = None if kept else pieces
                writer = write(rows, run.into, site, run.name, tasks=tasks)
            elif asked := tables_asked(pipeline, rows := log_rows(output, run.into)):
                refuse_unsupported(rows, pipeline.output)
                frame_of = _frames(written, site, spark, histories, lossy=lossy)
                flows = {data.name: frame_of(data) for data in pipeline.followed}
                finder = _finder(run, site, spark, asked)
                spool = Spool(Files(spark), run.checkpoint, past.program)
                found = BatchLookups(rows, finder, spool, pieces)
                whole = side_by_side(flows)
                writer = write(whole, run.into, site, run.name, tasks=pieces, compute=found)
            elif asked := asked_beside_state(pipeline, rows, run.checkpoint):
                beside = _beside_state(run, site, rows, asked, past=past, pieces=pieces)
                writer = write(
                    beside.rows, run.into, site, run.name, tasks=beside.tasks, compute=beside
                )
            else:
                split = _tasks(run, spark, output, past, pieces=pieces)
                writer = write(rows, run.into, site, run.name, tasks=split)
        writer = writer.queryName(run.name).option("checkpointLocation", run.checkpoint)
    except Exception as error:
        raise refusal(error, pipeline) from error
    return partial(_start, _triggered(writer, pipeline, once=run.beside), pipeline, spark)


def _refuse_other_checkpoint(run: Run, site: Site, spark: SparkSession) -> None:
    if isinstance(run.into, Lake):
        path = lake_path(run.into.name, site)
        refuse_other_checkpoint(spark, run.pipeline, run.into, path, checkpoint=run.checkpoint)


def program_of(pipeline: Pipeline, site: Site, spark: SparkSession) -> str:
    """Return a fingerprint of what a pipeline computes, as far as its plan shows it."""
    frames = _frames(pipeline, site, spark, None)
    output = None if pipeline.declared else output_of(pipeline, frames)
    # A checkpoint goes on with the history that it began with, or without.
    past = [each.name for each in pipeline.reads if each.archive]
    facts: list[Any] = [identity_of(pipeline, spark, output).to_json(), past]
    if output is not None:
        facts += steps_behind(output, [data.name for data in pipeline.reads])
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _frames(
    pipeline: Pipeline,
    site: Site,
    spark: SparkSession,
    histories: Histories | None,
    *,
    lossy: bool = False,
) -> Callable[[Data], DataFrame]:
    """Return a function that gives the inputs of a pipeline, histories first."""
    real_time, lookups = isinstance(pipeline.trigger, RealTime), pipeline.lookups

    def frame_of(data: Data) -> DataFrame:
        if isinstance(data, Lake):
            path, streaming = lake_path(data.name, site), data not in lookups
            return lake_rows(spark, data, path, streaming=streaming)
        if isinstance(data, Table) and data in lookups:
            return latest_records(table_rows(spark, site.connection, data.topic.name), data)
        limit = None if real_time else RECORDS_PER_BATCH
        if histories is None:
            rows = topic_rows(spark, site.connection, data.topic.name)
        else:
            rows = histories.rows(data, per_batch=limit, lossy=lossy)
        observed = None if real_time else observed_name(pipeline.name, data)
        if isinstance(pipeline.writes, Archive):
            return archive_rows(rows, pipeline.writes.stream, observed=observed)
        return records(rows, data, observed=observed, natively=real_time)

    return frame_of


def _continued(
    run: Run, data: OnLog, site: Site, spark: SparkSession, output: DataFrame | None
) -> Continued:
    """Return what the sink of a run continues from; refuse a checkpoint that does not fit it."""
    begun = begun_before(
        Files(spark),
        site.connection,
        data,
        pipeline=run.pipeline.name,
        name=run.name,
        checkpoint=run.checkpoint,
    )
    return Continued(
        name=run.name,
        checkpoint=run.checkpoint,
        program="" if output is None else _computed(run.pipeline, output),
        begun=begun,
    )


def _tasks(
    run: Run, spark: SparkSession, output: DataFrame, past: Continued, *, pieces: int
) -> int:
    """Return into how many tasks the rows of a batch are split."""
    pipeline = run.pipeline
    if past.begun is None and interrupted(Files(spark), run.checkpoint):
        # Begun by a release that did not write down how it was split.
        return pieces
    keyed = bool(pipeline.writes.record.schema.key)
    alike = repeats_alike(output, [data.name for data in pipeline.reads], keyed=keyed)
    # Rows that may be others when the batch is repeated are written as a whole, or not at all.
    return pieces if alike and not pipeline.lookups else 1


def _finder(run: Run, site: Site, spark: SparkSession, asked: Sequence[Asking]) -> Finder:
    """Return what finds the rows that a pipeline asks tables for by values."""
    pipeline, names = run.pipeline, {each.table for each in asked}
    return Finder(
        reads=pipeline.reads,
        streams=[data.name for data in pipeline.followed],
        asked=asked,
        followers={
            data.name: run.tables.follower(site.connection, data, spark)
            for data in pipeline.lookups
            if isinstance(data, Table) and data.name in names
        },
    )


def _beside_state(
    run: Run,
    site: Site,
    output: DataFrame,
    asked: Sequence[Asking],
    *,
    past: Continued,
    pieces: int,
) -> LookupsBesideState:
    """Return what finds rows for a pipeline with state, before each of its batches."""
    spark = output.sparkSession
    keyed = bool(run.pipeline.writes.record.schema.key)
    return LookupsBesideState(
        output=output,
        finder=_finder(run, site, spark, asked),
        spool=Spool(Files(spark), run.checkpoint, past.program),
        checkpoint=run.checkpoint,
        connection=site.connection,
        # State without keys in the output is split by its values, which may differ in a digit.
        tasks=pieces if keyed else 1,
    )


def _computed(pipeline: Pipeline, output: DataFrame) -> str:
    """Return a fingerprint of what computes the rows of a pipeline, Python functions included."""
    inputs = [data.name for data in pipeline.reads]
    steps = [*state_aspects(output, inputs).values(), *steps_behind(output, inputs)]
    return fingerprint(*steps, code_text(pipeline.function))


def _computed_rows(
    graph: Graph,
    run: Run,
    pipeline: Pipeline,
    histories: Histories,
    *,
    buckets: int,
    lossy: bool,
) -> DataFrame:
    limit = RECORDS_PER_BATCH
    if pipeline.operator is None:
        rows = pane_rows(graph, pipeline, histories, buckets=buckets, per_batch=limit, lossy=lossy)
    else:
        given = {
            data.name: histories.rows(
                data, per_batch=limit, lossy=lossy, headers=isinstance(data, Table)
            )
            for data in pipeline.followed
        }
        rows = streamed_results(given, graph, pipeline, buckets=buckets)
    if run.beside and not isinstance(run.into, Lake):
        rows = rows.where(F.col("topic") == run.into.topic.name)
    return rows


def _given(output: DataFrame | None) -> DataFrame:
    if output is None:
        raise TypeError("windows write streams and tables")
    return output


def _start(writer: Any, pipeline: Pipeline, spark: SparkSession) -> StreamingQuery:
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", pipeline.name)
    try:
        query: StreamingQuery = writer.start()
    except Exception as error:
        raise refusal(error, pipeline) from error
    return query


def pane_rows(
    graph: Graph,
    pipeline: Pipeline,
    histories: Histories,
    *,
    buckets: int,
    per_batch: int,
    lossy: bool = False,
) -> DataFrame:
    """Return the records that a windowed aggregation writes, late ones included.

    Its state has this many ``buckets``, for the life of the checkpoint.
    """
    (data,), into = pipeline.reads, pipeline.writes
    if isinstance(data, Lake) or isinstance(into, Lake):
        raise TypeError(f"{pipeline.name}: windows are over streams, into streams and tables")
    rows = histories.rows(data, per_batch=per_batch, lossy=lossy)
    observed = observed_name(pipeline.name, data)
    if not why_not_native(pipeline):
        return native_panes(rows, data, pipeline, into=into, observed=observed)
    return streamed_panes(rows, graph, pipeline, buckets=buckets, observed=observed)


def _triggered(writer: Any, pipeline: Pipeline, *, once: bool = False) -> Any:
    trigger = pipeline.trigger
    if once:
        return writer.outputMode(pipeline.output).trigger(availableNow=True)
    if isinstance(trigger, RealTime):
        # Real-time mode knows no other output mode; for a plan without state it is append.
        span = f"{round(trigger.checkpoint_every.total_seconds() * 1000)} milliseconds"
        return writer.outputMode("update").trigger(realTime=span)
    span = f"{round(trigger.every.total_seconds() * 1000)} milliseconds"
    return writer.outputMode(pipeline.output).trigger(processingTime=span)
