"""Computes the output of a pipeline batch by batch, with the rows of tables that a batch asks for.

The function of the pipeline was called once, and its plan is a template. For each batch its inputs
are replaced: a stream by the rows of the batch, a table by the few rows that may match. To know
these, the sides of the joins that ask are computed first.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from pyspark.storagelevel import StorageLevel

from penstock.backbone.client.connection import Connection
from penstock.core.graph.data import Data, Table
from penstock.core.graph.parts import Pipeline
from penstock.pipelines.lookups.asking import Asking, askings, is_steady
from penstock.pipelines.lookups.follower import TableFollower
from penstock.pipelines.lookups.spool import Found, Spool
from penstock.pipelines.program.rewriting import PlanEditor, analyzed, nodes
from penstock.pipelines.program.stateful import is_input, several, state_aspects
from penstock.pipelines.sink.kafka import ComputedBatch
from penstock.pipelines.spark.schema import frame_type
from penstock.pipelines.spark.session import scratch_of
from penstock.pipelines.spark.sqltext import name

__all__ = ["BatchLookups", "Tables", "side_by_side", "tables_asked"]

FOUND_BYTES = 512 << 20
"""If a batch finds more than so much, the table is read as a whole instead."""


class Tables:
    """The tables that one run of a pipeline follows, kept from one attempt to the next."""

    def __init__(self) -> None:
        self._followers: dict[str, TableFollower] = {}

    def follower(
        self, connection: Connection, table: Table[Any], spark: SparkSession
    ) -> TableFollower:
        """Return what follows a table, always the same."""
        if table.name not in self._followers:
            directory = Path(tempfile.mkdtemp(prefix="table-", dir=scratch_of(spark)))
            self._followers[table.name] = TableFollower(connection, table, directory)
        return self._followers[table.name]


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
    reads: Sequence[Data]
    streams: Sequence[str]
    asked: Sequence[Asking]
    followers: Mapping[str, TableFollower]
    spool: Spool
    tasks: int
    """Into how many tasks the rows are split, where a repeated batch gives the same."""
    steady: bool = field(init=False)

    def __post_init__(self) -> None:
        beside = [each.name for each in self.reads if each.name not in self.streams]
        plan = nodes(analyzed(self.output), self._inputs)
        places = [each.alias() for each in plan if is_input(each, self._inputs)]
        # A table that is read as a whole somewhere may be another one when a batch is repeated.
        whole = [each for each in places if each in beside]
        for each in self.asked:
            whole.remove(each.table)
        self.steady = is_steady(self.output, self._inputs, beside=whole)

    def __call__(self, rows: DataFrame, batch: int) -> ComputedBatch:
        """Return the output of one batch; its rows are read once."""
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        editor = PlanEditor(rows.sparkSession, self._inputs)
        frames = self._frames(rows)
        found, made_of = self._kept(batch) or self._looked_up(batch, editor, frames)
        for number, table in found.items():
            frames[number] = self._frame(rows.sparkSession, number, table)
        plan = editor.replaced(analyzed(self.output), lambda *at: _rows_of(frames, *at))
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
        found = self._found(editor, frames)
        whole = self.steady and len(found) == len(self.asked)
        return found, (self.spool.put(batch, found) if whole else None) or ""

    def _found(
        self, editor: PlanEditor, frames: Mapping[int | str, DataFrame]
    ) -> dict[int, pa.Table]:
        """Return the rows that may match, for each place where they are not too many."""
        for follower in self.followers.values():
            follower.catch_up()
        found: dict[int, pa.Table] = {}
        there = dict(frames)
        for each in self.asked:
            if not each.needs <= found.keys():
                continue
            other = editor.replaced(each.other, lambda *at: _rows_of(there, *at), first=each.first)
            asked = editor.values(other, each.values, each.columns).toArrow().drop_null()
            values = [asked.column(at).combine_chunks() for at in each.columns]
            rows = self.followers[each.table].store.find(each.columns, values)
            if rows.nbytes <= FOUND_BYTES:
                found[each.number] = rows
                there[each.number] = self._frame(editor.spark, each.number, rows)
        return found

    def _frame(self, spark: SparkSession, number: int, rows: pa.Table) -> DataFrame:
        table = next(each.table for each in self.asked if each.number == number)
        data = next(each for each in self.reads if each.name == table)
        return spark.createDataFrame(rows, frame_type(data.record.schema))

    def _frames(self, rows: DataFrame) -> dict[int | str, DataFrame]:
        if len(self.streams) == 1:
            return {self.streams[0]: rows}
        return {
            each: rows.where(F.col(name(each)).isNotNull()).select(f"{name(each)}.*")
            for each in self.streams
        }

    @property
    def _inputs(self) -> list[str]:
        return [each.name for each in self.reads]


def _rows_of(frames: Mapping[int | str, DataFrame], number: int, alias: str) -> DataFrame | None:
    """Return what takes the place of an input: by its number where it has one, or by its alias."""
    return frames.get(number, frames.get(alias))
