"""Finds the rows of tables that a batch asks for."""

import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.backbone.client.connection import Connection
from penstock.core.graph.data import Data, Table
from penstock.pipelines.lookups.asking import Asking, is_steady
from penstock.pipelines.lookups.follower import TableFollower
from penstock.pipelines.program.rewriting import PlanEditor, analyzed, nodes
from penstock.pipelines.program.stateful import is_input
from penstock.pipelines.spark.schema import frame_type
from penstock.pipelines.spark.session import scratch_of

__all__ = ["FOUND_BYTES", "Finder", "Tables", "rows_of"]

FOUND_BYTES = 512 << 20
"""If a batch finds more than so much, the table is read as a whole instead, where that is possible.
"""


class Tables:
    """The tables that one run of a pipeline follows, kept from one attempt to the next."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._followers: dict[str, TableFollower] = {}

    def stop(self) -> None:
        """Let what is reading a table give up: the first time that may take minutes."""
        self._stop.set()

    def follower(
        self, connection: Connection, table: Table[Any], spark: SparkSession
    ) -> TableFollower:
        """Return what follows a table, always the same; it may go on where it was stopped."""
        self._stop.clear()
        if table.name not in self._followers:
            directory = Path(tempfile.mkdtemp(prefix="table-", dir=scratch_of(spark)))
            self._followers[table.name] = TableFollower(
                connection, table, directory, stop=self._stop
            )
        return self._followers[table.name]


@dataclass(frozen=True, slots=True)
class Finder:
    """What one plan asks of tables, and what follows these."""

    reads: Sequence[Data]
    streams: Sequence[str]
    asked: Sequence[Asking]
    followers: Mapping[str, TableFollower]

    @property
    def inputs(self) -> list[str]:
        """The aliases of all inputs."""
        return [each.name for each in self.reads]

    def is_steady(self, output: DataFrame) -> bool:
        """Return whether a batch gives the same again, if it finds the same again."""
        plan = nodes(analyzed(output), self.inputs)
        places = [each.alias() for each in plan if is_input(each, self.inputs)]
        # A table that is read as a whole somewhere may be another one when a batch is repeated.
        whole = [each for each in places if each not in self.streams]
        for each in self.asked:
            whole.remove(each.table)
        return is_steady(output, self.inputs, beside=whole)

    def found(
        self,
        editor: PlanEditor,
        frames: Mapping[int | str, DataFrame],
        *,
        most: int | None = FOUND_BYTES,
    ) -> dict[int, pa.Table]:
        """Return the rows that may match, for each place where they are not too many."""
        for follower in self.followers.values():
            follower.catch_up()
        found: dict[int, pa.Table] = {}
        there = dict(frames)
        for each in self.asked:
            if not each.needs <= found.keys():
                continue
            other = editor.replaced(each.other, lambda *at: rows_of(there, *at))
            asked = editor.values(other, each.values, each.columns).toArrow().drop_null()
            values = [asked.column(at).combine_chunks() for at in each.columns]
            rows = self.followers[each.table].store.find(each.columns, values)
            if most is None or rows.nbytes <= most:
                found[each.number] = rows
                there[each.number] = self.frame(editor.spark, each.number, rows)
        return found

    def frame(self, spark: SparkSession, number: int, rows: pa.Table) -> DataFrame:
        """Return the rows found at a place as a frame."""
        return spark.createDataFrame(rows, frame_type(self.data(number).record.schema))

    def data(self, number: int) -> Data:
        """Return the table that is looked up at a place."""
        table = next(each.table for each in self.asked if each.number == number)
        return next(each for each in self.reads if each.name == table)


def rows_of(frames: Mapping[int | str, DataFrame], number: int, alias: str) -> DataFrame | None:
    """Return what takes the place of an input: by its number where it has one, or by its alias."""
    return frames.get(number, frames.get(alias))
