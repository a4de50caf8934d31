"""Where a pipeline's records go: a topic, at least once, or a table of the lake, exactly once."""

from typing import Any

from pyspark.sql import DataFrame

from penstock.backbone.site import Site
from penstock.core.graph import Data, Lake, OnLog
from penstock.pipelines.reading import kafka_options
from penstock.pipelines.writing import log_rows

__all__ = ["lake_path", "row_options", "rows_writer", "stream_writer", "topic_options"]

_LINGER_MILLISECONDS = 5
"""How long a record waits for company on its way out."""


def stream_writer(output: DataFrame, data: Data, site: Site) -> Any:
    """Return the writer of a stream of typed records, lacking trigger, mode and checkpoint.

    A batch that Spark repeats after a crash adds nothing to the lake, and its records to a topic
    once more: whoever reads a table sees no difference, whoever reads a stream sees them twice.
    """
    if isinstance(data, Lake):
        path = lake_path(data.name, site)
        writer: Any = output.writeStream.format("delta").option("path", path)
        return writer.partitionBy(*data.partition_by) if data.partition_by else writer
    return log_rows(output, data).writeStream.format("kafka").options(**topic_options(data, site))


def rows_writer(output: DataFrame, site: Site) -> Any:
    """Return the writer of rows that say themselves to which topic they go, at least once."""
    return output.writeStream.format("kafka").options(**row_options(site))


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


def lake_path(name: str, site: Site) -> str:
    """Return where a lake table is."""
    return f"{(site.settings.lake.path or str(site.places.lake)).rstrip('/')}/{name}"
