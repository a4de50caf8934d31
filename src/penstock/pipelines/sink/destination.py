"""Write a pipeline's records to a topic or a lake table.

This is exactly once, except in real-time mode: there a topic gets a repeated batch a second time.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.site import Site
from penstock.core.graph.data import Data, Lake, OnLog
from penstock.pipelines.gate.reading import kafka_options
from penstock.pipelines.lake.table import lake_path, make_table, stored_rows
from penstock.pipelines.sink.kafka import ComputedBatch, Continued, OnceSink, SinkHandle
from penstock.pipelines.sink.kafkatask import Output
from penstock.pipelines.sink.rows import log_rows

__all__ = [
    "WRITTEN",
    "once_writer",
    "row_options",
    "stream_writer",
    "topic_options",
]

WRITTEN = "written"
"""What a batch counts of its output."""

_LINGER_MILLISECONDS = 5
"""How long a record waits for others to be sent with it."""


def stream_writer(output: DataFrame, data: Data, site: Site, *, at_once: bool = False) -> Any:
    """Return the writer of a stream of typed records, lacking trigger, mode and checkpoint.

    ``at_once``: no record waits for company, which costs throughput and saves milliseconds.

    A batch that Spark repeats after a crash adds nothing to the lake, and its records to a topic
    once more: whoever reads a table sees no difference, whoever reads a stream sees them twice.
    """
    if isinstance(data, Lake):
        path = lake_path(data.name, site)
        make_table(output.sparkSession, data, path)
        counted = _counted(stored_rows(output, data), data.name)
        writer: Any = counted.writeStream.format("delta")
        return writer.option("path", path).partitionBy(*data.partition_columns)
    options = topic_options(data, site) | ({"kafka.linger.ms": "0"} if at_once else {})
    return log_rows(output, data).writeStream.format("kafka").options(**options)


def once_writer(
    rows: DataFrame,
    data: OnLog,
    site: Site,
    name: str,
    *,
    tasks: int | None,
    past: Continued | None = None,
    guard: Callable[[], None] = lambda: None,
    handle: SinkHandle | None = None,
    compute: Callable[[DataFrame, int], ComputedBatch] | None = None,
) -> Any:
    """Return the writer of rows for topics, each once for readers of committed records.

    Rows are those of ``log_rows``, or say themselves to which topic they go; or they become such
    rows by ``compute``. The query's progress counts them as ``WRITTEN``; what is computed the
    handle counts. ``tasks``, ``past``, ``guard``, ``handle`` and ``compute``: see ``OnceSink``.
    """
    output = Output(site.connection, name, data.topic.name, data.topic.partitioning)
    sink = OnceSink(output, tasks=tasks, past=past, guard=guard, handle=handle, compute=compute)
    return (rows if compute else _counted(rows, name)).writeStream.foreachBatch(sink)


def _counted(rows: DataFrame, name: str) -> DataFrame:
    return rows.observe(name, F.count(F.lit(1)).alias(WRITTEN))


def topic_options(data: OnLog, site: Site) -> dict[str, str]:
    """Return how Spark's Kafka connector writes a topic."""
    options = row_options(site) | {"topic": data.topic.name}
    if data.topic.partitioning == "round_robin":
        options["kafka.partitioner.ignore.keys"] = "true"
    return options


def row_options(site: Site) -> dict[str, str]:
    """Return how Spark's Kafka connector writes rows that say to which topic they go."""
    return kafka_options(site.connection) | {
        "kafka.linger.ms": str(_LINGER_MILLISECONDS),
        "kafka.max.request.size": str(site.connection.settings.max_message_bytes),
        "includeHeaders": "true",
    }
