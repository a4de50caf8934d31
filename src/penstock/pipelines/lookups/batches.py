"""Computes the output of a pipeline batch by batch, with the rows of tables that a batch asks for.

The function of the pipeline was called once, and its plan is a template. For each batch its inputs
are replaced: a stream by the rows of the batch, a table by the few rows that may match. To know
these, the sides of the joins that ask are computed first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from pyspark.storagelevel import StorageLevel

from penstock.core.graph.data import Table
from penstock.core.graph.parts import Pipeline
from penstock.pipelines.lookups.asking import Asking, askings
from penstock.pipelines.lookups.finding import Finder, rows_of
from penstock.pipelines.lookups.spool import Found, Spool
from penstock.pipelines.program.rewriting import PlanEditor, PlanTemplate, analyzed, nodes
from penstock.pipelines.program.stateful import several, state_aspects
from penstock.pipelines.sink.kafka import ComputedBatch
from penstock.pipelines.spark.sqltext import name

__all__ = ["BatchLookups", "side_by_side", "tables_asked"]


def tables_asked(pipeline: Pipeline, output: DataFrame) -> list[Asking]:
    """Return where a pipeline looks tables up by values, if it can be computed batch by batch.

    With state it cannot: what Spark keeps belongs to one plan for all batches.
    """
    inputs = [data.name for data in pipeline.reads]
    tables = [data.name for data in pipeline.lookups if isinstance(data, Table)]
    if not tables or state_aspects(output, inputs):
        return []
    if any(several(node.subqueries()) for node in nodes(analyzed(output), inputs)):
        return []
    return askings(output, inputs, tables)


def side_by_side(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of several inputs as one frame, each with the others' columns null."""
    if len(frames) == 1:
        return next(iter(frames.values()))
    kinds = {each: frame.schema.simpleString() for each, frame in frames.items()}
    parts = [
        frame.select(
            *(
                F.struct(F.col("*")).alias(each)
                if each == own
                else F.lit(None).cast(kind).alias(each)
                for each, kind in kinds.items()
            )
        )
        for own, frame in frames.items()
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return whole


@dataclass(slots=True)
class BatchLookups:
    """Computes batches for a sink; ``output`` is the template."""

    output: DataFrame
    finder: Finder
    spool: Spool
    tasks: int
    """Into how many tasks the rows are split, where a repeated batch gives the same."""
    steady: bool = field(init=False)
    _template: PlanTemplate = field(init=False)
    _editor: PlanEditor | None = field(default=None, init=False)
    """Of the session of the query, which is another one than that of the output."""

    def __post_init__(self) -> None:
        self.steady = self.finder.is_steady(self.output)
        self._template = PlanTemplate(analyzed(self.output), self.finder.inputs)

    def __call__(self, rows: DataFrame, batch: int) -> ComputedBatch:
        """Return the output of one batch; its rows are read once."""
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        if self._editor is None:
            self._editor = PlanEditor(rows.sparkSession)
        editor = self._editor
        frames = self._frames(rows)
        found, made_of = self._kept(batch) or self._looked_up(batch, editor, frames)
        for number, table in found.items():
            frames[number] = self.finder.frame(rows.sparkSession, number, table)
        plan = editor.replaced(self._template, lambda *at: rows_of(frames, *at))
        return ComputedBatch(
            rows=editor.frame(plan),
            # What may be others when it is repeated is written as a whole, or not at all.
            tasks=self.tasks if made_of else 1,
            made_of=made_of,
            release=rows.unpersist,
        )

    def _kept(self, batch: int) -> tuple[Found, str] | None:
        return self.spool.get(batch) if self.steady else None

    def _looked_up(
        self, batch: int, editor: PlanEditor, frames: Mapping[int | str, DataFrame]
    ) -> tuple[Found, str]:
        """Return what a batch finds, and a fingerprint of it if it is kept."""
        found = self.finder.found(editor, frames)
        whole = self.steady and len(found) == len(self.finder.asked)
        return found, (self.spool.put(batch, found) if whole else None) or ""

    def _frames(self, rows: DataFrame) -> dict[int | str, DataFrame]:
        streams = self.finder.streams
        if len(streams) == 1:
            return {streams[0]: rows}
        return {
            each: rows.where(F.col(name(each)).isNotNull()).select(f"{name(each)}.*")
            for each in streams
        }
