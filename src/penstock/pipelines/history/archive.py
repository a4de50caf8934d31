"""The archive of a stream: its records in the lake, each with the place it had on the log.

Only these places identify a record: files of the table may be rewritten at any time, and a record
may be in the table twice.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Archive, Stream
from penstock.core.graph.graph import Graph
from penstock.core.rules.archive import APPENDED_AT, OFFSET, PARTITION
from penstock.errors import ConfigurationError
from penstock.pipelines.checkpoint.batches import checkpoint_at, committed_offsets
from penstock.pipelines.checkpoint.trimmed import Gap
from penstock.pipelines.gate.gate import ARCHIVED, REFUSED, judged
from penstock.pipelines.gate.reading import count_gate
from penstock.pipelines.lake.snapshot import Snapshot
from penstock.pipelines.lake.table import lake_path, make_table, table_sql, with_default
from penstock.pipelines.spark.schema import frame_type
from penstock.pipelines.spark.sqltext import literal

__all__ = [
    "ArchiveVersion",
    "archive_rows",
    "as_topic_rows",
    "deduplicated",
    "kept_now",
    "seam_of",
    "with_kept",
]

_LOG = logging.getLogger("penstock.pipelines")
_FOUND = {PARTITION: "partition", OFFSET: "offset", APPENDED_AT: "timestamp"}
_BEFORE = "_penstock_before"
_CREATE_TIME = 0
"""What Kafka calls a timestamp that the producer gave."""


@dataclass(frozen=True, slots=True)
class ArchiveVersion:
    """One version of an archive, and by partition the offset from which the log goes on."""

    rows: DataFrame
    size_bytes: int
    seam: Mapping[int, int]


def archive_rows(rows: DataFrame, data: Stream[Any], *, observed: str | None = None) -> DataFrame:
    """Return the records of a topic's rows with their coordinates; dead letters are left out."""
    found = judged(rows, data, beside=_FOUND)
    if observed is not None:
        found = count_gate(found, observed)
    return found.where(f"not {REFUSED}").drop(REFUSED)


def kept_now(
    graph: Graph, archive: Archive[Any], site: Site, spark: SparkSession
) -> ArchiveVersion:
    """Return the archive as it is now, even if it changes while it is read.

    Raises ConfigurationError where records between it and the log are gone, or where the log is
    not the one that was archived.
    """
    # First how far it was filled, then the table: it holds at least as much.
    filled = committed_offsets(spark, checkpoint_at(graph, archive.filling, site))
    path = lake_path(archive.name, site)
    make_table(spark, archive, path)
    (size,) = spark.sql(f"describe detail {table_sql(path)}").select("sizeInBytes").collect()
    version = Snapshot(spark, path).version
    reader: Any = spark.read.format("delta").option("versionAsOf", version)
    rows: DataFrame = reader.load(path)
    tops = {row[0]: row[1] for row in rows.groupBy(PARTITION).agg(F.max(OFFSET)).collect()}
    topic = archive.stream.topic.name
    reached = {at: offset for (name, at), offset in filled.items() if name == topic}
    for number, top in tops.items():
        reached[number] = max(reached.get(number, 0), top + 1)
    ends = Topics(site.connection).ends(topic)
    seam = seam_of(archive, reached, ends, skip=site.settings.spark.on_trimmed == "skip")
    return ArchiveVersion(rows, size[0], seam)


def seam_of(
    archive: Archive[Any],
    reached: Mapping[int, int],
    ends: Mapping[int, tuple[int, int]],
    *,
    skip: bool,
) -> dict[int, int]:
    """Return by partition the offset from which the log goes on behind an archive.

    ``reached`` is how far the archive has come, ``ends`` where the log begins and ends. What is in
    neither is refused, or logged and left out where ``skip`` says so.
    """
    topic = archive.stream.topic.name
    seam = {number: reached.get(number) or low for number, (low, _) in sorted(ends.items())}
    if beyond := {number: at for number, at in seam.items() if at > ends[number][1]}:
        raise _other_log(archive, beyond, ends)
    gaps = [
        Gap(topic, number, at, ends[number][0])
        for number, at in seam.items()
        if at < ends[number][0]
    ]
    if gaps:
        error = _gone(archive, gaps)
        if not skip:
            raise error
        _LOG.warning("%s (%s); they are skipped", error.message, error.detail)
    return {number: max(at, ends[number][0]) for number, at in seam.items()}


def deduplicated(rows: DataFrame) -> DataFrame:
    """Return the rows of an archive without those that were archived again."""
    before = F.lag(OFFSET).over(Window.partitionBy(PARTITION).orderBy(OFFSET))
    found = rows.withColumn(_BEFORE, before).where(f"{_BEFORE} is null or {_BEFORE} < {OFFSET}")
    return found.drop(_BEFORE)


def with_kept(log: DataFrame, kept: DataFrame, stream: Stream[Any]) -> DataFrame:
    """Return rows of a topic and rows of its archive as one frame, which the gate understands."""
    nothing = f"cast(null as {frame_type(stream.record.schema).simpleString()})"
    return as_topic_rows(kept, log, stream).union(log.selectExpr("*", f"{nothing} as {ARCHIVED}"))


def as_topic_rows(kept: DataFrame, log: DataFrame, stream: Stream[Any]) -> DataFrame:
    """Return rows of an archive in the columns of rows of the log, and the records beside them."""
    known = {
        "topic": literal(stream.topic.name),
        "partition": PARTITION,
        "offset": OFFSET,
        "timestamp": APPENDED_AT,
        "timestampType": str(_CREATE_TIME),
    }
    nothing = {each.name: f"cast(null as {each.dataType.simpleString()})" for each in log.schema}
    columns = [f"{known.get(each, nothing[each])} as {each}" for each in log.columns]
    fields = ", ".join(with_default(each) for each in stream.record.schema.fields)
    return kept.selectExpr(*columns, f"struct({fields}) as {ARCHIVED}")


def _gone(archive: Archive[Any], gaps: Sequence[Gap]) -> ConfigurationError:
    gone = sum(gap.offsets for gap in gaps)
    return ConfigurationError(
        f"{gone:,} offsets of {archive.stream.name} are neither in {archive.name} nor on the log",
        code="history.gap",
        detail="; ".join(map(str, gaps)),
        hint="keep records longer; to continue without them: --set spark.on_trimmed=skip",
    )


def _other_log(
    archive: Archive[Any], beyond: Mapping[int, int], ends: Mapping[int, tuple[int, int]]
) -> ConfigurationError:
    topic = archive.stream.topic.name
    places = (
        f"{topic}[{number}] ends at offset {ends[number][1]}, its archive ends at {at}"
        for number, at in beyond.items()
    )
    return ConfigurationError(
        f"{archive.name} does not belong to the existing log",
        code="history.other-log",
        detail=f"{'; '.join(places)}: the topic was created again, or a broker has lost records",
        hint=f"archive it under another name: app.archive(..., name=...) instead of {archive.name}",
    )
