"""Find the late records of Spark's own windows, which drop them silently.

A batch says how many rows its windows did not take. Only where there are any, exactly the offsets
of the batch are read again, and the records that were late for it written to the ledger. Spark
takes for late what ends before the watermark of the batch before; its offset log has both.
"""

import logging
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.client.logrecord import LogRecord
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import OnLog
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.panes.bucket import BucketOutput
from penstock.core.panes.pane import LateElement
from penstock.core.panes.times import plus
from penstock.core.records.deadletter import Coordinates
from penstock.core.rollup.reader import GroupKey
from penstock.core.rollup.wire import PaneWire
from penstock.core.wiring.panes import pane_destination, rollup_of
from penstock.pipelines.checkpoint.batches import (
    Offsets,
    PlannedBatch,
    committed_batches,
    planned_batch,
    planned_batches,
)
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.gate.reading import OffsetRange
from penstock.pipelines.gate.sweeper import Found, Letter, Sweeper
from penstock.pipelines.rollups.batchtrail import BatchTrail, TakenBatch
from penstock.pipelines.rollups.frame import OFFSET, PARTITION, TIME, group, plain_rows
from penstock.pipelines.rollups.native import SHIFT, window_bounds, window_of

__all__ = ["LateSweeper"]

_MILLISECOND = 1000
_LOG = logging.getLogger("penstock.pipelines")


class _Entry(msgspec.Struct):
    """What of an entry says where its record stood."""

    part: str = ""
    topic: str = ""
    partition: int = -1
    offset: int = -1


class LateSweeper(Sweeper):
    """Follows one pipeline that Spark's own windows compute, batch by batch."""

    def __init__(
        self, graph: Graph, pipeline: Pipeline, site: Site, spark: SparkSession, checkpoint: str
    ) -> None:
        super().__init__(graph, pipeline, site, spark, into=graph.late_records.name, name="late")
        self._rollup = rollup_of(pipeline)
        self._wire = PaneWire(self._rollup, pane_destination(graph, pipeline))
        self._key = GroupKey(self._rollup.groups)
        self._files = Files(spark)
        self._checkpoint = checkpoint
        self._watermark = -SHIFT
        self._trail = BatchTrail(self._known, self._planned)
        self.unknown = 0
        """How many offsets were in batches that Spark had forgotten before anybody looked."""

    def follow_batch(
        self, batch: int, *, dropped: bool, from_progress: PlannedBatch | None = None
    ) -> None:
        """Process a finished batch: write the records that were late for it.

        Earlier batches that nobody has processed are included, as far as Spark remembers them.
        """
        for taken in self._trail.follow(batch, dropped=dropped, from_progress=from_progress):
            self._watermark = taken.watermark * _MILLISECOND - SHIFT
            self._pass_by(taken.start)
            self.follow(taken.start, taken.end, rejected=taken.dropped)

    def count_batches(
        self, batch: int, *, dropped: bool, from_progress: PlannedBatch | None = None
    ) -> tuple[int, int]:
        """Return how many entries a finished batch, and those before it, are worth.

        Also how many batches that is about. Nothing is written.
        """
        entries = batches = 0
        for taken in self._trail.follow(batch, dropped=dropped, from_progress=from_progress):
            batches += 1
            if taken.dropped:
                self._watermark = taken.watermark * _MILLISECOND - SHIFT
                entries += sum(
                    len(letters)
                    for topic in self._inputs
                    for _, _, letters in self._look(topic, self._between(topic, taken))
                )
        return entries, batches

    def begin_after(self, batch: int) -> None:
        """Begin behind a batch that was followed before."""
        self._trail.begin(batch)

    def _pass_by(self, start: Offsets) -> None:
        """Pass the offsets of batches that nobody can tell the watermark of."""
        position = self._begin()
        behind = {at: offset for at, offset in start.items() if offset > position.get(at, 0)}
        if behind:
            count = sum(offset - position.get(at, 0) for at, offset in behind.items())
            self.unknown += count
            _LOG.warning(
                "%s: late records among %s offsets are not in the ledger: Spark has forgotten "
                "their batches",
                self._pipeline.name,
                f"{count:,}",
            )
            position |= behind

    def _between(self, topic: str, taken: TakenBatch) -> OffsetRange:
        ends = Topics(self._site.connection).ends(topic)
        return {
            number: (taken.start.get((topic, number), low), taken.end[topic, number])
            for number, (low, _) in ends.items()
            if (topic, number) in taken.end
        }

    def catch_up_batches(self) -> None:
        """Look at every finished batch whose late records a crash may have kept from being written.

        Spark remembers its last hundred batches.
        """
        if done := committed_batches(self._files, self._checkpoint):
            self.follow_batch(done[-1], dropped=True)

    def found_quickly(self, topic: str, over: OffsetRange) -> Iterator[Found] | None:  # noqa: ARG002
        """Return None: only Spark knows what it took for late."""
        return None

    def origin(self, record: LogRecord) -> tuple[str, Coordinates]:
        """Return whose window an entry of the ledger is about, and which record."""
        try:
            said = msgspec.json.decode(record.value or b"{}", type=_Entry)
        except msgspec.MsgspecError:
            # Others may write there, too.
            said = _Entry()
        return said.part, Coordinates(said.topic, said.partition, said.offset)

    def found(self, rows: DataFrame, data: OnLog) -> Iterator[Found]:
        """Yield the records that were late, once for each window that did not take them."""
        groups = [group(index) for index in range(len(self._rollup.groups))]
        plain = plain_rows(rows, data, self._rollup)
        event_at = F.timestamp_micros(F.col(TIME) + SHIFT)
        windowed = plain.select(PARTITION, OFFSET, TIME, *groups, window_of(self._rollup, event_at))
        start, end = window_bounds()
        late = windowed.selectExpr(
            PARTITION, OFFSET, TIME, *groups, f"{start} as start", f"{end} as end"
        ).where(f"end <= {self._watermark}L")
        rows_by_place = groupby(
            late.orderBy(PARTITION, OFFSET, "start").toLocalIterator(),
            itemgetter(PARTITION, OFFSET),
        )
        for (partition, offset), several in rows_by_place:
            elements = [self._late_element(row, groups) for row in several]
            given = BucketOutput(self._watermark, 0, late=elements)
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

    def _known(self) -> list[int]:
        return planned_batches(self._files, self._checkpoint)

    def _planned(self, batch: int) -> PlannedBatch | None:
        try:
            return planned_batch(self._files, self._checkpoint, batch)
        except Py4JJavaError:
            if batch in self._known():
                raise
            return None
