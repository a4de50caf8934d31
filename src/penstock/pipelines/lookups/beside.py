"""Look-ups of a pipeline that keeps state: its plan is one for all batches, and stays.

In the place of a table the plan reads the file of what its batch has found. Before a batch runs,
its records are read once more, beside the query, to see what they ask for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from penstock.backbone.client.connection import Connection
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Lake, OnLog, Table
from penstock.core.graph.parts import Pipeline
from penstock.pipelines.checkpoint.batches import planned_batch, planned_batches
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.gate.reading import OffsetRange, records, topic_rows
from penstock.pipelines.lookups.asking import Asking, askings
from penstock.pipelines.lookups.finding import Finder
from penstock.pipelines.lookups.spool import Spool, SpooledRows
from penstock.pipelines.program.rewriting import PlanEditor, PlanTemplate, analyzed, nodes
from penstock.pipelines.program.stateful import keeps_state, several
from penstock.pipelines.sink.kafka import ComputedBatch
from penstock.pipelines.spark.schema import frame_type

__all__ = ["LookupsBesideState", "asked_beside_state"]


def asked_beside_state(pipeline: Pipeline, output: DataFrame, checkpoint: str) -> list[Asking]:
    """Return where a pipeline with state looks tables up by the values of records alone.

    The files of what was found are read by Spark's workers, so the checkpoint must be on a disk.
    """
    inputs = [data.name for data in pipeline.reads]
    tables = [data.name for data in pipeline.lookups if isinstance(data, Table)]
    past = any(data.archive for data in pipeline.reads)
    if not tables or past or "://" in checkpoint:
        return []
    if any(several(node.subqueries()) for node in nodes(analyzed(output), inputs)):
        return []
    found = askings(output, inputs, tables)
    plain = [each for each in found if not _has_state(each.other.plan, inputs)]
    numbers = {each.number for each in plain}
    return [each for each in plain if each.needs <= numbers]


def _has_state(plan: Any, inputs: Sequence[str]) -> bool:
    return any(keeps_state(node) for node in nodes(plan, inputs))


@dataclass(slots=True)
class LookupsBesideState:
    """Finds what a batch asks for before it runs; ``rows`` is what the query computes."""

    output: DataFrame
    finder: Finder
    spool: Spool
    checkpoint: str
    connection: Connection
    tasks: int
    """Into how many tasks the rows are split, where a repeated batch gives the same."""
    rows: DataFrame = field(init=False)
    _editor: PlanEditor = field(init=False)

    def __post_init__(self) -> None:
        spark = self.output.sparkSession
        # Of this frame Spark knows no size: it does not take it for one to broadcast, which it
        # would read before the batch has begun.
        one = spark.createDataFrame(spark.sparkContext.parallelize([(0,)], 1), "one int")
        frames = {
            each.number: one.mapInArrow(
                SpooledRows.of(self.checkpoint, each.number),
                frame_type(self.finder.data(each.number).record.schema),
            )
            for each in self.finder.asked
        }
        self._editor = PlanEditor(spark)
        template = PlanTemplate(analyzed(self.output), self.finder.inputs)
        placed = self._editor.replaced(template, lambda at, _: frames.get(at), hints=False)
        self.rows = self._editor.frame(placed)
        if not self.finder.is_steady(self.output):
            self.tasks = 1

    def __call__(self, rows: DataFrame, batch: int) -> ComputedBatch:
        """Return the rows as they are; what they ask for is there then."""
        kept = self.spool.get(batch)
        made_of = kept[1] if kept else self._look_up(batch)
        return ComputedBatch(rows=rows, tasks=self.tasks, made_of=made_of)

    def _look_up(self, batch: int) -> str:
        spark = self.output.sparkSession
        files = Files(spark)
        ends = planned_batch(files, self.checkpoint, batch).end
        begins: Mapping[tuple[str, int], int] = {}
        if batch - 1 in planned_batches(files, self.checkpoint):
            begins = planned_batch(files, self.checkpoint, batch - 1).end
        frames: dict[int | str, DataFrame] = {}
        for data in self.finder.reads:
            if data.name in self.finder.streams and not isinstance(data, Lake):
                over = self._range(data, begins, ends)
                rows = topic_rows(spark, self.connection, data.topic.name, over=over)
                frames[data.name] = records(rows, data)
        found = self.finder.found(self._editor, frames, most=None)
        return self.spool.put(batch, found, most=None) or ""

    def _range(
        self,
        data: OnLog,
        begins: Mapping[tuple[str, int], int],
        ends: Mapping[tuple[str, int], int],
    ) -> OffsetRange:
        """Return the offsets of a batch; a little more does no harm."""
        topic = data.topic.name
        lows = {number: low for number, (low, _) in Topics(self.connection).ends(topic).items()}
        over: dict[int, tuple[int, int]] = {}
        for number, low in lows.items():
            end = ends.get((topic, number), low)
            over[number] = min(max(low, begins.get((topic, number), low)), end), end
        return over
