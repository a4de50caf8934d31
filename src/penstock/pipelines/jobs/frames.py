"""What a run of a job reads: all there is of its inputs, at one moment."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from penstock.backbone.site import Site
from penstock.backbone.topics.range import EARLIEST, LATEST
from penstock.backbone.topics.span import settled_range
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Data, Lake, Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.job import Job
from penstock.pipelines.gate.reading import OffsetRange, latest_records, records, topic_rows
from penstock.pipelines.history.range import PastRange
from penstock.pipelines.lake.table import lake_path, lake_rows

__all__ = ["Read", "read_all"]


@dataclass(frozen=True, slots=True)
class Read:
    """The frames of a run, in the order of the job's inputs, and their offsets."""

    frames: list[DataFrame]
    offsets: dict[str, OffsetRange]


def read_all(graph: Graph, job: Job, site: Site, spark: SparkSession) -> Read:
    """Return a frame for each input; what comes later is not part of it."""
    found = Read([], {})
    for data in job.reads:
        found.frames.append(_frame(graph, data, site, spark, found.offsets).alias(data.name))
    return found


def _frame(
    graph: Graph, data: Data, site: Site, spark: SparkSession, offsets: dict[str, OffsetRange]
) -> DataFrame:
    if isinstance(data, Lake):
        return lake_rows(spark, data, lake_path(data.name, site), streaming=False)
    if data.archive is not None:
        past = PastRange.settled(graph, data.archive, site, spark, start=EARLIEST, end=LATEST)
        offsets[data.name] = past.over
        return records(past.rows(site, spark), data)
    topic = data.topic.name
    over = settled_range(Topics(site.connection), topic, start=EARLIEST, end=LATEST)
    offsets[data.name] = over
    rows = topic_rows(spark, site.connection, topic, over=over)
    return latest_records(rows, data) if isinstance(data, Table) else records(rows, data)
