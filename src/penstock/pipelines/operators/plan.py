"""An operator as a DataFrame of records for Kafka: of streams and tables, or of ranges of them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame

from penstock.core.graph.data import Data, Lake, OnLog, Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.instants import FIRST_MICROS, LAST_MICROS
from penstock.core.operators.marks import TIME
from penstock.core.operators.operator import Plan
from penstock.core.wiring.operators import plan_of
from penstock.core.wiring.results import result_destination
from penstock.pipelines.gate.gate import REFUSED, judged
from penstock.pipelines.gate.reading import count_gate, observed_name
from penstock.pipelines.operators.hosting import Hosting
from penstock.pipelines.operators.processor import (
    BatchMachines,
    OperatorProcessor,
    PassingMachine,
    count_results,
)
from penstock.pipelines.operators.routing import BUCKET, COLUMNS, PLACES, ROUTED, Router, Ticker
from penstock.pipelines.rollups.plan import beats, bucket_numbers
from penstock.pipelines.rollups.processor import OUTGOING
from penstock.pipelines.spark.session import shuffle_partitions
from penstock.pipelines.spark.sqltext import Sql, coalesce, literal, name, when

__all__ = ["final_results", "remembers", "streamed_results"]

_BESIDE = "_penstock_{}"
_DELETED = "deleted"


def remembers(plan: Plan) -> bool:
    """Return whether an operator keeps state: then its results come from where that is.

    The rows of broadcast tables are state, too.
    """
    return plan.stateful or any(each.kind == "broadcast" for each in plan.inputs)


def streamed_results(
    rows: Mapping[str, DataFrame], graph: Graph, pipeline: Pipeline, *, buckets: int
) -> DataFrame:
    """Return the records that an operator writes while its inputs go on; late ones included.

    ``rows`` are those of each input's topic, by the name of the input; ``buckets`` is the number of
    partitions of its state, for as long as it has a checkpoint.
    """
    plan = plan_of(pipeline)
    topics = _topics(pipeline)
    hosting = Hosting(plan, result_destination(graph, pipeline), topics)
    arrivals = _arrivals(rows, pipeline, topics, observed=True)
    spark = arrivals.sparkSession
    if not remembers(plan):
        routed = arrivals.mapInArrow(Router(plan, topics, (0,)), ROUTED)
        given = routed.mapInArrow(PassingMachine(hosting), OUTGOING)
        return count_results(given, f"{pipeline.name}/results")
    numbers = bucket_numbers(spark, buckets)
    routed = arrivals.mapInArrow(Router(plan, topics, numbers), ROUTED)
    if _needs_beat(plan):
        routed = routed.union(beats(spark, Ticker(numbers), ROUTED))
    given = routed.groupBy(BUCKET).transformWithStateInPandas(
        OperatorProcessor(hosting), OUTGOING, "append", "none"
    )
    return count_results(given, f"{pipeline.name}/results")


def final_results(
    rows: Mapping[str, DataFrame],
    graph: Graph,
    pipeline: Pipeline,
    *,
    into: str,
    late: str,
    letters: str,
) -> DataFrame:
    """Return the records that hold the final answer over rows that are all there will be."""
    plan, topics = plan_of(pipeline).finished(), _topics(pipeline)
    to = replace(
        result_destination(graph, pipeline), topic=into, late_topic=late, dead_letters=letters
    )
    hosting = Hosting(plan, to, topics)
    arrivals = _arrivals(rows, pipeline, topics, observed=False)
    count = shuffle_partitions(arrivals.sparkSession)
    if not remembers(plan):
        routed = arrivals.mapInArrow(Router(plan, topics, (0,)), ROUTED)
        return routed.mapInArrow(PassingMachine(hosting), OUTGOING).where("topic != ''")
    numbers = bucket_numbers(arrivals.sparkSession, count)
    routed = arrivals.mapInArrow(Router(plan, topics, numbers, singly=True), ROUTED)
    ordered = routed.repartition(count, BUCKET).sortWithinPartitions(BUCKET, *PLACES)
    return ordered.mapInArrow(BatchMachines(hosting), OUTGOING)


def _arrivals(
    rows: Mapping[str, DataFrame], pipeline: Pipeline, topics: tuple[str, ...], *, observed: bool
) -> DataFrame:
    """Return the valid rows of all inputs, with the columns that a router reads."""
    found = [
        _plain(
            rows[data.name],
            data,
            topics.index(data.topic.name),
            observed=observed_name(pipeline.name, data) if observed else None,
        )
        for data in map(_on_log, pipeline.reads)
    ]
    return reduce(DataFrame.unionByName, found)


def _plain(rows: DataFrame, data: OnLog, number: int, *, observed: str | None) -> DataFrame:
    beside = {
        _BESIDE.format("topic"): f"bigint({number})",
        _BESIDE.format("partition"): "bigint(partition)",
        _BESIDE.format("offset"): "offset",
        _BESIDE.format("stamp"): "unix_micros(timestamp)",
        _BESIDE.format("key"): "key",
        _BESIDE.format("value"): "value",
    }
    if isinstance(data, Table):
        beside[_BESIDE.format(_DELETED)] = _deleted_at()
    time = data.record.schema.time
    found = judged(rows, data, beside=beside, only=[time] if time else ())
    if observed is not None:
        found = count_gate(found, observed)
    # Null: a deletion of a table's row.
    kept = found.where(f"{REFUSED} is null or not {REFUSED}")
    columns: dict[str, Sql] = {each: _BESIDE.format(each) for each in COLUMNS}
    columns["clock"] = "unix_micros(current_timestamp())"
    columns["time"] = f"unix_micros({name(time)})" if time else "cast(null as bigint)"
    if isinstance(data, Table):
        columns["time"] = coalesce(columns["time"], _BESIDE.format(_DELETED))
    return kept.selectExpr(*(f"{text} as {name(each)}" for each, text in columns.items()))


def _deleted_at() -> Sql:
    """Return the event time of a deletion that says it, as :func:`deleted_at` reads it."""
    text = f"try_element_at(filter(headers, each -> each.key = {literal(TIME)}), 1).value"
    time = f"try_cast(cast({text} as string) as bigint)"
    known = f"value is null and {time} between {literal(FIRST_MICROS)} and {literal(LAST_MICROS)}"
    return when(known, time)


def _topics(pipeline: Pipeline) -> tuple[str, ...]:
    return tuple(_on_log(data).topic.name for data in pipeline.reads)


def _on_log(data: Data) -> OnLog:
    if isinstance(data, Lake):
        raise TypeError(f"operators read streams and tables, not the lake: {data.name}")
    return data


def _needs_beat(plan: Plan) -> bool:
    """Whether something may become due while no record comes."""
    rules = [each.rule for each in plan.inputs if each.rule is not None]
    return any(rule.closes_after is not None or rule.idle_after is not None for rule in rules)
