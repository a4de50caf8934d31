"""The late records of Spark's own windows, which drops them in silence.

A batch says how many rows its windows did not take. Only where there are any, exactly the offsets
of the batch are read again, and the records that were late for it written to the ledger. Spark
takes for late what ends before the watermark of the batch before; its offset log has both.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.site import Site
from penstock.backbone.topics import Topics
from penstock.core.graph import Graph, OnLog, Pipeline
from penstock.core.panes.bucket import Given
from penstock.core.panes.pane import LateElement
from penstock.core.panes.times import plus
from penstock.core.rollup.reader import GroupKey
from penstock.core.rollup.resolve import rollup_of
from penstock.core.rollup.wire import Destination, PaneWire
from penstock.pipelines.checkpoint import Files, PlannedBatch, committed_batches, planned_batch
from penstock.pipelines.reading import OffsetRange
from penstock.pipelines.rollups.frame import OFFSET, PARTITION, TIME, group, plain_rows
from penstock.pipelines.rollups.native import EVENT_AT, WINDOW, window_of
from penstock.pipelines.sweeper import Found, Letter, Sweeper

__all__ = ["LateSweeper"]

_MILLISECOND = 1000


class LateSweeper(Sweeper):
    """Follows one pipeline that Spark's own windows compute, batch by batch."""

    def __init__(
        self, graph: Graph, pipeline: Pipeline, site: Site, spark: SparkSession, checkpoint: str
    ) -> None:
        super().__init__(graph, pipeline, site, spark, into=graph.late_records.name, name="late")
        self._rollup = rollup_of(pipeline)
        self._wire = PaneWire(self._rollup, Destination.of(graph, pipeline))
        self._key = GroupKey(self._rollup.groups)
        self._files = Files(spark)
        self._checkpoint = checkpoint
        self._watermark = 0
        self._last = (-1, PlannedBatch({}, 0))
        """The batch that was followed last."""

    def follow_batch(self, batch: int, *, dropped: bool) -> None:
        """Take note of a finished batch, and write the records that were late for it."""
        before, planned = self._begin_batch(batch)
        self.follow(before.end, planned.end, rejected=dropped)

    def count_batch(self, batch: int) -> int:
        """Return how many entries a finished batch is worth; nothing is written."""
        before, planned = self._begin_batch(batch)
        return sum(
            len(letters)
            for topic in self._inputs
            for _, _, letters in self._look(topic, self._between(topic, before, planned))
        )

    def _begin_batch(self, batch: int) -> tuple[PlannedBatch, PlannedBatch]:
        before, planned = self._planned(batch - 1), self._planned(batch)
        self._last = (batch, planned)
        self._watermark = before.watermark * _MILLISECOND
        return before, planned

    def _between(self, topic: str, before: PlannedBatch, planned: PlannedBatch) -> OffsetRange:
        ends = Topics(self._site.connection).ends(topic)
        return {
            number: (before.end.get((topic, number), low), planned.end[topic, number])
            for number, (low, _) in ends.items()
            if (topic, number) in planned.end
        }

    def catch_up_batches(self) -> None:
        """Look at every finished batch whose late records a crash may have kept from being written.

        Spark remembers its last hundred batches.
        """
        names = self._files.names(f"{self._checkpoint}/offsets")
        known = {-1, *map(int, filter(str.isdecimal, names))}
        for batch in committed_batches(self._files, self._checkpoint):
            if batch - 1 in known:
                self.follow_batch(batch, dropped=True)

    def found_quickly(self, topic: str, over: OffsetRange) -> Iterator[Found] | None:  # noqa: ARG002
        """Return None: only Spark knows what it took for late."""
        return None

    def found(self, rows: DataFrame, data: OnLog) -> Iterator[Found]:
        """Yield the records that were late, once for each window that did not take them."""
        groups = [group(index) for index in range(len(self._rollup.groups))]
        plain = plain_rows(rows, data, self._rollup)
        windowed = plain.withColumn(EVENT_AT, F.timestamp_micros(TIME)).select(
            PARTITION, OFFSET, TIME, *groups, window_of(self._rollup)
        )
        bounds = [f"unix_micros({WINDOW}.{each}) as {each}" for each in ("start", "end")]
        late = windowed.selectExpr(PARTITION, OFFSET, TIME, *groups, *bounds).where(
            f"end <= {self._watermark}L"
        )
        rows_by_place = groupby(
            late.orderBy(PARTITION, OFFSET, "start").toLocalIterator(),
            itemgetter(PARTITION, OFFSET),
        )
        for (partition, offset), several in rows_by_place:
            elements = [self._late_element(row, groups) for row in several]
            given = Given(self._watermark, 0, late=elements)
            letters: list[Letter] = [
                {"key": entry.key, "value": entry.value, "headers": []}
                for entry in self._wire.records(given)
            ]
            yield partition, offset, letters

    def _late_element(self, row: Any, groups: list[str]) -> tuple[bytes, LateElement]:
        expired = self._watermark >= plus(row["end"], self._rollup.windowing.lateness)
        element = LateElement(
            row[TIME],
            None,
            (row["start"], row["end"]),
            "expired" if expired else "closed",
            self._watermark - row[TIME],
            (str(row[PARTITION]), row[OFFSET]),
        )
        return self._key.pack([row[each] for each in groups]), element

    def _planned(self, batch: int) -> PlannedBatch:
        followed, planned = self._last
        if batch == followed:
            return planned
        if batch < 0:
            return PlannedBatch({}, 0)
        return planned_batch(self._files, self._checkpoint, batch)
