"""Replace the old output of a pipeline by the rebuilt one.

Nobody else writes the output at this moment. Each of these may be killed and called again: what was
done is then found done. Readers of committed records see the old output or the new one; of a table
whose difference takes longer than a transaction may last, some keys of both for a while.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import LogRecord
from penstock.backbone.log.positions import PositionStore, position_group
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.range import Offset
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Lake
from penstock.pipelines.gate.reading import topic_rows
from penstock.pipelines.lake.table import is_conflict, make_table, table_exists
from penstock.pipelines.lake.writers import NO_MORE

__all__ = ["append_stream", "replace_lake", "replace_table", "write_changes"]

SWITCH_LIMIT = timedelta(minutes=15)
"""How long a transaction may last; no broker allows more by default."""
WHOLE_LIMIT = timedelta(minutes=10)
"""How long the difference of a table may take to be written at once."""

_COPIED_RECORDS, _COPIED_BYTES = 10_000, 8 << 20
"""The most bytes in one transaction, unless a single record is larger."""
_COMMITS = 10
"""How often a commit is retried after it lost against another one."""


def replace_table(
    spark: SparkSession, connection: Connection, name: str, *, old: str, new: str
) -> int:
    """Make a table equal to another; return how many keys were different.

    Keys that are new or have another value are written, those that are no more are deleted. See
    ``write_changes`` for how much of it is one transaction.
    """
    with TransactionalProducer(connection, name, timeout=SWITCH_LIMIT) as producer:
        # Only now the tables stand: whoever was killed here has its transaction ended.
        before, after = (_latest(spark, connection, topic) for topic in (old, new))
        joined = before.alias("old").join(after.alias("new"), "key", "full_outer")
        changes = joined.where("not (old.value <=> new.value)").select("key", "new.value")
        # Computed first: the time of a transaction is for writing alone.
        changes = changes.persist(StorageLevel.DISK_ONLY)
        try:
            changes.count()
            return write_changes(producer, map(_change, changes.toLocalIterator()), into=old)
        finally:
            changes.unpersist()


def write_changes(
    producer: TransactionalProducer,
    changes: Iterable[tuple[bytes, bytes | None]],
    *,
    into: str,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Write keys and values, a null deletes; return how many.

    They are one transaction, unless they take longer than ``WHOLE_LIMIT``: then several, of which
    none outlives its time. Whoever was interrupted in between finds the rest by comparing again.
    """
    count, began_at = 0, 0.0
    for key, value in changes:
        if not producer.in_transaction:
            producer.begin()
            began_at = clock()
        producer.send(into, key=key, value=value)
        count += 1
        if clock() - began_at >= WHOLE_LIMIT.total_seconds():
            producer.commit()
    if producer.in_transaction:
        producer.commit()
    return count


def _change(row: Any) -> tuple[bytes, bytes | None]:
    return bytes(row["key"]), None if row["value"] is None else bytes(row["value"])


def append_stream(connection: Connection, name: str, *, old: str, new: str) -> int:
    """Write the records of one stream behind those of another, each once; return how many.

    They keep key, value, headers, timestamp and the number of their partition.
    """
    topics, reader, count = Topics(connection), LogReader(connection), 0
    with TransactionalProducer(connection, name) as producer:
        # Only now the position stands: whoever was killed here has its transaction ended.
        done = PositionStore(connection).read(name)
        for number, (low, high) in topics.ends(new, committed=True).items():
            begin = done.get((new, number), low)
            if begin < high:
                records = iter(reader.read(new, start=Offset(begin), partitions=[number]))
                while chunk := _chunk(records):
                    _append(producer, chunk, name, into=old)
                    count += len(chunk)
    return count


def _chunk(records: Iterator[LogRecord]) -> list[LogRecord]:
    chunk: list[LogRecord] = []
    size = 0
    for record in islice(records, _COPIED_RECORDS):
        chunk.append(record)
        size += len(record.key or b"") + len(record.value or b"")
        if size >= _COPIED_BYTES:
            break
    return chunk


def _append(
    producer: TransactionalProducer, chunk: Sequence[LogRecord], name: str, *, into: str
) -> None:
    producer.begin()
    for record in chunk:
        producer.send(
            into,
            key=record.key,
            value=record.value,
            headers=record.headers,
            partition=record.partition,
            timestamp_at=record.timestamp_at,
        )
    last = chunk[-1]
    done = {(last.topic, last.partition): last.offset + 1}
    producer.commit(done, group=position_group(name))


def replace_lake(
    spark: SparkSession, data: Lake[Any], *, old: str, new: str, fenced: str | None
) -> None:
    """Make a lake table hold what another holds, in one commit; its history keeps what it held.

    ``fenced`` is the id of the query that wrote it: by the same commit all its batches count as
    written, so that it adds nothing any more.
    """
    if not table_exists(spark, old):
        make_table(spark, data, old)
    writer: Any = spark.read.format("delta").load(new).write.format("delta").mode("overwrite")
    writer = writer.option("overwriteSchema", "true").partitionBy(*data.partition_columns)
    if fenced is not None:
        # A commit that was made is not made again, either.
        writer = writer.option("txnAppId", fenced).option("txnVersion", str(NO_MORE))
    for left in reversed(range(_COMMITS)):
        try:
            writer.save(old)
        except PySparkException as error:
            # The old writer, or the upkeep of the table, was faster.
            if not left or not is_conflict(error):
                raise
        else:
            return


def _latest(spark: SparkSession, connection: Connection, topic: str) -> DataFrame:
    """Return the last value of each key of a table; null: it was deleted."""
    ends = Topics(connection).ends(topic, committed=True)
    rows = topic_rows(spark, connection, topic, over=ends)
    return rows.groupBy("key").agg(F.max_by("value", "offset").alias("value"))
