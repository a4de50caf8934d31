"""Count the late records of a rebuild. They are not written, because the old run has reported them.

The count lies beside the checkpoint and is written when a batch is done. A batch whose end nobody
saw, because the rebuild was killed there, is not in it; the next start finds that out and says so.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from pyspark.sql import SparkSession

from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.panes.panecounts import AHEAD, LATE
from penstock.pipelines.checkpoint.batches import committed_batches
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.checkpoint.progress import (
    Progress,
    dropped_rows,
    observed,
    planned,
    was_batch,
)
from penstock.pipelines.rollups.latesweeper import LateSweeper
from penstock.pipelines.rollups.native import why_not_native

__all__ = ["LateCount", "LateTally", "late_count"]

_FILE = "rebuild-late.json"
_AFTER_ALL = "~"
"""Sorts behind every instant as text."""


@dataclass(frozen=True, slots=True)
class LateCount:
    """How many entries the late ledger would have got; ``complete``: from every batch."""

    records: int = 0
    complete: bool = True
    through: int = -1
    """The last batch that was counted."""

    def __str__(self) -> str:
        """Return it in words, for people."""
        if self.complete and not self.records:
            return "no record was late for its windows"
        number = f"{self.records:,}" if self.complete else f"at least {self.records:,}"
        return f"records late for its windows: {number}; a rebuild writes none to the ledger"

    def with_batch(self, batch: int, records: int, *, batches: int = 1) -> "LateCount":
        """Return the count with a finished batch, and others before it that were looked at."""
        complete = self.complete and batches >= batch - self.through
        return replace(self, records=self.records + records, complete=complete, through=batch)

    def resumed(self, done: Iterable[int]) -> "LateCount":
        """Return the count as it is when these batches are done."""
        last = max(done, default=-1)
        if last <= self.through:
            return self
        return replace(self, complete=False, through=last)


def late_count(files: Files, checkpoint: str) -> LateCount | None:
    """Return what was counted beside a checkpoint; None: nothing was, it has no windows."""
    if _FILE not in files.names(checkpoint):
        return None
    return LateCount(**json.loads(files.text(f"{checkpoint}/{_FILE}")))


class LateTally:
    """Follows the query that rebuilds one windowed aggregation."""

    def __init__(
        self, graph: Graph, pipeline: Pipeline, site: Site, spark: SparkSession, checkpoint: str
    ) -> None:
        self._files = Files(spark)
        self._file = f"{checkpoint}/{_FILE}"
        found = late_count(self._files, checkpoint) or LateCount()
        self._count = found.resumed(committed_batches(self._files, checkpoint))
        self._sweeper: LateSweeper | None = None
        if not why_not_native(pipeline):
            self._sweeper = LateSweeper(graph, pipeline, site, spark, checkpoint)
            self._sweeper.begin_after(self._count.through)
        self._keep()

    @property
    def seen(self) -> tuple[int, str]:
        """What stands before all progress of batches that were not counted yet."""
        return self._count.through, _AFTER_ALL

    def follow(self, several: Iterable[Progress]) -> None:
        """Take note of finished batches; those that are known already count once."""
        before = self._count
        for progress in several:
            batch = progress["batchId"]
            if was_batch(progress) and batch > self._count.through:
                records, batches = self._late(progress)
                self._count = self._count.with_batch(batch, records, batches=batches)
        if self._count != before:
            self._keep()

    def _late(self, progress: Progress) -> tuple[int, int]:
        """Return how many records were late, and of how many batches that is known."""
        if self._sweeper is None:
            rows = observed(progress, LATE)
            return sum((row[each] or 0) for row in rows for each in (LATE, AHEAD)), 1
        # Spark counts what it dropped after it has put records together.
        dropped = dropped_rows(progress) > 0
        from_progress = planned(progress)
        return self._sweeper.count_batches(
            progress["batchId"], dropped=dropped, from_progress=from_progress
        )

    def _keep(self) -> None:
        self._files.write(self._file, json.dumps(asdict(self._count)))
