"""A windowed aggregation as a DataFrame of records for Kafka: of a stream, or of a range."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from penstock.core.graph.data import Lake, OnLog
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.panes.arrivals import unpack_arrivals
from penstock.core.panes.bucket import Bucket
from penstock.core.panes.store import MemoryStore
from penstock.core.panes.triggers import AfterDelay
from penstock.core.panes.windows import CountWindows
from penstock.core.rollup.resolve import Rollup
from penstock.core.rollup.wire import PaneWire
from penstock.core.wiring.panes import pane_destination, rollup_of
from penstock.pipelines.rollups.combining import (
    BUCKET,
    PAYLOAD,
    SCHEMA,
    Heartbeat,
    PreShuffleCombiner,
)
from penstock.pipelines.rollups.frame import plain_rows
from penstock.pipelines.rollups.processor import OUTGOING, PaneProcessor, count_panes, outgoing
from penstock.pipelines.spark.session import shuffle_partitions

__all__ = ["beats", "bucket_numbers", "finished_panes", "needs_beat", "streamed_panes"]

_BEATS_PER_SECOND = 1
_SEARCHED = 64
"""How many numbers are tried for each bucket that is looked for."""


def streamed_panes(
    rows: DataFrame,
    graph: Graph,
    pipeline: Pipeline,
    *,
    buckets: int,
    observed: str | None = None,
) -> DataFrame:
    """Return the records that an aggregation writes while its input goes on.

    ``buckets`` is the number of partitions of its state, for as long as it has a checkpoint.
    """
    rollup, to = rollup_of(pipeline), pane_destination(graph, pipeline)
    spark = rows.sparkSession
    numbers = bucket_numbers(spark, buckets)
    data = _input(pipeline)
    plain = plain_rows(rows, data, rollup, observed=observed, heard=True)
    arrivals = plain.mapInArrow(PreShuffleCombiner(rollup, numbers), SCHEMA)
    if needs_beat(rollup, partitions=data.topic.partitions):
        arrivals = arrivals.union(beats(spark, Heartbeat(numbers), SCHEMA))
    given = arrivals.groupBy(BUCKET).transformWithStateInPandas(
        PaneProcessor(rollup, to), OUTGOING, "append", "none"
    )
    return count_panes(given, f"{pipeline.name}/panes")


def finished_panes(
    rows: DataFrame, graph: Graph, pipeline: Pipeline, *, into: str, late: str
) -> DataFrame:
    """Return the records that hold the final answer over rows that are all there will be."""
    rollup = rollup_of(pipeline).finished()
    to = replace(pane_destination(graph, pipeline), topic=into, late_topic=late)
    spark = rows.sparkSession
    numbers = bucket_numbers(spark, shuffle_partitions(spark))
    plain = plain_rows(rows, _input(pipeline), rollup)
    arrivals = plain.mapInArrow(PreShuffleCombiner(rollup, numbers), SCHEMA)

    def answers(frame: pd.DataFrame) -> pd.DataFrame:
        bucket = Bucket(rollup.machine(), rollup.rule, MemoryStore())
        wire = PaneWire(rollup, to)
        found = list(wire.records(bucket.take(map(unpack_arrivals, frame[PAYLOAD]))))
        if not isinstance(rollup.windowing.windows, CountWindows):
            # A count window that is not full has no answer, however long one waits.
            found += wire.records(bucket.finish())
        return outgoing(found)

    return arrivals.groupBy(BUCKET).applyInPandas(answers, OUTGOING)


def needs_beat(rollup: Rollup, *, partitions: int) -> bool:
    """Whether something may become due while no record comes."""
    rule = rollup.rule
    if rule is None or rule.closes_after is not None or _delays(rollup.windowing.trigger):
        return True
    # A partition that falls silent lets the others go on, though no record comes of theirs either.
    return rule.idle_after is not None and rule.follows == "slowest" and partitions > 1


def bucket_numbers(spark: SparkSession, count: int) -> tuple[int, ...]:
    """Return a number for each partition of the state, which Spark's hash sends there."""
    homes = f"transform(sequence(0, {count * _SEARCHED}), each -> pmod(hash(each), {count}))"
    (row,) = spark.sql(f"select {homes} as homes").collect()
    found: dict[int, int] = {}
    for number, home in enumerate(row["homes"]):
        found.setdefault(home, number)
    return tuple(found[home] for home in sorted(found))


def _input(pipeline: Pipeline) -> OnLog:
    (data,) = pipeline.reads
    if isinstance(data, Lake):
        raise TypeError(f"{pipeline.name}: windows are over streams")
    return data


def beats(spark: SparkSession, tell: Any, schema: str) -> DataFrame:
    """Return the time, once a second, as ``tell`` tells it to every bucket."""
    ticks = spark.readStream.format("rate").options(
        rowsPerSecond=_BEATS_PER_SECOND, numPartitions=1
    )
    clock = ticks.load().selectExpr("unix_micros(current_timestamp()) as clock")
    return clock.mapInArrow(tell, schema)


def _delays(trigger: Any) -> bool:
    """Whether a trigger waits for the clock."""
    if isinstance(trigger, AfterDelay):
        return True
    inner = [getattr(trigger, each.name) for each in fields(trigger)]
    found = [one for each in inner for one in (each if isinstance(each, tuple) else (each,))]
    return any(_delays(each) for each in found if is_dataclass(each))
