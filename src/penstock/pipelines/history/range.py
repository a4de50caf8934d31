"""A finished range of a stream with its history: a part from its archive, the rest from the log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.site import Site
from penstock.backbone.topics.range import End, Instant, Start
from penstock.backbone.topics.span import starts, stops
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Archive
from penstock.core.graph.graph import Graph
from penstock.core.rules.archive import APPENDED_AT, OFFSET, PARTITION
from penstock.pipelines.gate.reading import OffsetRange, topic_rows
from penstock.pipelines.history.archive import ArchiveVersion, deduplicated, kept_now, with_kept
from penstock.pipelines.spark.sqltext import Sql, any_of

__all__ = ["PastRange"]


@dataclass(frozen=True, slots=True)
class PastRange:
    """Offsets of a stream, on both sides of the seam."""

    archive: Archive[Any]
    kept: ArchiveVersion
    over: OffsetRange

    @classmethod
    def settled(
        cls,
        graph: Graph,
        archive: Archive[Any],
        site: Site,
        spark: SparkSession,
        *,
        start: Start,
        end: End,
    ) -> "PastRange":
        """Return the range as it is now; ConfigurationError where the history has a gap."""
        kept = kept_now(graph, archive, site, spark)
        topics, topic = Topics(site.connection), archive.stream.topic.name
        # The log as if nothing had been trimmed.
        ends = {
            number: (0, high) for number, (_, high) in topics.ends(topic, committed=True).items()
        }
        first = starts(topics, topic, start=start, ends=ends)
        last = stops(topics, topic, end=end, ends=ends, follow=False)
        begun, ended = _kept_at(kept, start), _kept_at(kept, end)
        over = {}
        for number, (_, high) in ends.items():
            begin = min(first.get(number, high), begun.get(number, high))
            until = min(last[number] or 0, ended.get(number, high))
            over[number] = (begin, max(begin, until))
        return cls(archive, kept, over)

    def rows(self, site: Site, spark: SparkSession) -> DataFrame:
        """Return the rows of the range, a task for each partition of the topic, in its order."""
        seam = self.kept.seam
        log = topic_rows(
            spark,
            site.connection,
            self.archive.stream.topic.name,
            over={
                number: (max(begin, seam[number]), max(until, seam[number]))
                for number, (begin, until) in self.over.items()
            },
        )
        found = with_kept(
            log, deduplicated(self.kept.rows).where(self._condition()), self.archive.stream
        )
        tasks = found.repartition(len(self.over), "partition")
        return tasks.sortWithinPartitions("partition", "offset")

    def _condition(self) -> Sql:
        """Return what holds for the archived rows of the range."""
        return any_of(
            "false",
            *(
                f"{PARTITION} = {number} and {OFFSET} >= {begin} "
                f"and {OFFSET} < {min(until, self.kept.seam[number])}"
                for number, (begin, until) in self.over.items()
            ),
        )


def _kept_at(kept: ArchiveVersion, at: Start | End) -> Mapping[int, int]:
    """Return the first archived offset at an instant, by partition; nothing for other places."""
    if not isinstance(at, Instant):
        return {}
    later = kept.rows.where(F.unix_millis(APPENDED_AT) >= at.milliseconds)
    return {row[0]: row[1] for row in later.groupBy(PARTITION).agg(F.min(OFFSET)).collect()}
