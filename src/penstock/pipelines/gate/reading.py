"""From topics to the DataFrames that a pipeline's function gets."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.client.connection import Connection
from penstock.core.graph.data import Data, OnLog, Stream, Table
from penstock.pipelines.gate.gate import REFUSED, judged
from penstock.pipelines.spark.keystore import key_store
from penstock.pipelines.spark.sqltext import name

__all__ = [
    "DELETIONS",
    "FETCHING",
    "RECEIVED",
    "RECORDS_PER_BATCH",
    "REJECTED",
    "OffsetRange",
    "count_gate",
    "gate_counts",
    "kafka_options",
    "latest_records",
    "observed_name",
    "records",
    "table_rows",
    "topic_rows",
]

RECEIVED, REJECTED, DELETIONS = "received", "rejected", "deletions"
"""What a batch counts of each input: all rows, dead letters, and deletions from a table."""

FETCHING: Mapping[str, str] = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
}
"""Twice as fast as the client's own defaults."""

RECORDS_PER_BATCH = 2_000_000
"""The most records of a topic in a batch, so that a batch fits into memory."""

OffsetRange = Mapping[int, tuple[int, int]]
"""By partition: the first offset, and the offset at which to stop."""

_KEY, _OFFSET, _LAST, _GONE = (f"_penstock_{each}" for each in ("key", "offset", "last", "gone"))


def observed_name(pipeline: str, data: Data) -> str:
    """Return the name under which an input's counts stand in a query's progress."""
    return f"{pipeline}/{data.name}"


def kafka_options(connection: Connection) -> dict[str, str]:
    """Return how Spark's Kafka connector reaches the cluster."""
    shared = {f"kafka.{name}": value for name, value in _java_config(connection).items()}
    return shared | {"kafka.bootstrap.servers": connection.bootstrap}


def _java_config(connection: Connection) -> dict[str, str]:
    return connection.java_config(key_store=key_store(connection))


def topic_rows(
    spark: SparkSession,
    connection: Connection,
    topic: str,
    *,
    over: OffsetRange | None = None,
    per_batch: int | None = RECORDS_PER_BATCH,
    lossy: bool = False,
    start: Mapping[int, int] | None = None,
    headers: bool = False,
) -> DataFrame:
    """Return the rows of a topic as they stand on the log: as a stream, or over a range.

    A batch of a stream has at most ``per_batch`` of them (real-time mode knows no such limit), and
    no headers unless they are asked for: they cost time. Rows that are gone from the log before
    they are read end it, unless it is ``lossy``. A new query begins at ``start``, by partition, or
    at the earliest.
    """
    if over is None:
        reader: Any = spark.readStream.format("kafka").options(
            subscribe=topic,
            startingOffsets="earliest" if start is None else _offsets(topic, start),
            failOnDataLoss="false" if lossy else "true",
            includeHeaders="true" if headers else "false",
            **({} if per_batch is None else {"maxOffsetsPerTrigger": str(per_batch)}),
        )
    else:
        # Assigned rather than subscribed: a range need not name every partition.
        reader = spark.read.format("kafka").options(
            assign=f'{{"{topic}":{sorted(over)}}}',
            startingOffsets=_offsets(topic, {number: span[0] for number, span in over.items()}),
            endingOffsets=_offsets(topic, {number: span[1] for number, span in over.items()}),
            failOnDataLoss="true",
            includeHeaders="true",
        )
    return _loaded(reader, connection)


def table_rows(spark: SparkSession, connection: Connection, topic: str) -> DataFrame:
    """Return all rows of a table's topic as a frame that reads it anew for each batch."""
    reader: Any = spark.read.format("kafka").options(subscribe=topic, failOnDataLoss="true")
    return _loaded(reader, connection)


def _loaded(reader: Any, connection: Connection) -> DataFrame:
    options = kafka_options(connection) | dict(FETCHING)
    options["kafka.isolation.level"] = "read_committed"
    frame: DataFrame = reader.options(**options).load()
    return frame


def records(
    rows: DataFrame, data: OnLog, *, observed: str | None = None, natively: bool = False
) -> DataFrame:
    """Return the records of a topic's rows; ``observed`` counts what was let in and what not.

    ``natively``: as real-time mode needs it, without Python.

    The watermark follows all records of a stream. Spark would push a condition of the function's
    below it, and windows over what is left would wait for each other; but not below the counting.
    """
    found = judged(rows, data, natively=natively)
    if (
        isinstance(data, Stream)
        and data.event_time.disorder is not None
        and (time := data.record.schema.time)
    ):
        span = f"{round(data.event_time.disorder.total_seconds() * 1000)} milliseconds"
        found = found.withColumn(time, F.when(~F.col(REFUSED), F.col(time)))
        found = found.withWatermark(time, span)
    if observed is not None:
        found = count_gate(found, observed)
    # Only a verdict of false is a record; null is a table's deletion.
    return found.where(~F.col(REFUSED)).drop(REFUSED)


def latest_records(rows: DataFrame, table: Table[Any], *, observed: str | None = None) -> DataFrame:
    """Return the rows of a table: the last record of each key, without deleted keys.

    Where the last one cannot be used the one before it stays. ``observed``: see ``records``.
    """
    found = judged(rows, table, beside={_KEY: "key", _OFFSET: "offset"})
    if observed is not None:
        found = count_gate(found, observed)
    fields = [name(field.name) for field in table.record.schema.fields]
    row = f"struct({REFUSED} is null as {_GONE}, {', '.join(fields)})"
    last = (
        found.where(f"{REFUSED} is null or not {REFUSED}")
        .groupBy(_KEY)
        .agg(F.expr(f"max_by({row}, {_OFFSET})").alias(_LAST))
    )
    return last.where(f"not {_LAST}.{_GONE}").selectExpr(*(f"{_LAST}.{each}" for each in fields))


def count_gate(found: DataFrame, observed: str) -> DataFrame:
    """Return judged rows, counted by verdict in the query's progress."""
    return found.observe(observed, *_counts())


def gate_counts(rows: DataFrame, data: OnLog) -> dict[str, int]:
    """Compute the counts that a batch would observe, in a separate pass."""
    row = judged(rows, data).agg(*_counts()).first()
    return {name: row[name] if row else 0 for name in (RECEIVED, REJECTED, DELETIONS)}


def _counts() -> list[Column]:
    verdict = F.col(REFUSED)
    return [
        F.count(F.lit(1)).alias(RECEIVED),
        F.count_if(verdict).alias(REJECTED),
        F.count_if(verdict.isNull()).alias(DELETIONS),
    ]


def _offsets(topic: str, offsets: Mapping[int, int]) -> str:
    inner = ",".join(f'"{number}":{offset}' for number, offset in sorted(offsets.items()))
    return f'{{"{topic}":{{{inner}}}}}'
