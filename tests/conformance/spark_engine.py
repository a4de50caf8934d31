"""The pane cases on Spark: real Structured Streaming, with its state store, in one query.

A run (one stream of one case, in one bundling) is a bucket. The steps of all runs go through the
query in lockstep, a micro-batch for each: first every run writes down its steps, then the query
goes through them, then every run reads its panes.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pane_rows import pane_rows

from penstock.core.aggregates.collect import Collect
from penstock.core.expression import parse
from penstock.core.panes.arrivals import Arrivals, pack_arrivals, unpack_arrivals
from penstock.core.panes.bucket import BucketOutput
from penstock.core.panes.machine import Windowing
from penstock.core.panes.packing import decode
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.records.schema import Field, ListOf, Scalar, Schema
from penstock.core.rollup.resolve import Group, Measure, Rollup
from penstock.pipelines.rollups.combining import BUCKET, PAYLOAD, SCHEMA, PreShuffleCombiner
from penstock.pipelines.rollups.frame import (
    AHEAD,
    CLOCK,
    OFFSET,
    PARTITION,
    TIME,
    group,
    value,
)
from penstock.pipelines.rollups.processor import PaneProcessor
from penstock.pipelines.spark.session import local_session

TEXT = Scalar("text")
ELEMENT = Schema(
    name="Element", fields=(Field(name="key", type=TEXT), Field(name="value", type=TEXT))
)
ROW = "run int, step int, clock long, watermark long, elements string"


def rollup_for(windowing: Windowing) -> Rollup:
    """A case as an aggregation: it collects its values, which travel as JSON."""
    gives = Field(name="values", type=ListOf(TEXT))
    return Rollup(
        topic="elements",
        schema=ELEMENT,
        steps=(),
        groups=(Group("key", parse("key", ELEMENT), TEXT),),
        measures=(Measure("values", Collect(), parse("value", ELEMENT), TEXT, gives),),
        windowing=windowing,
        rule=WatermarkRule(),
    )


@dataclass
class Run:
    """One stream of one case: its steps, then its panes."""

    number: int
    windowing: Windowing
    steps: list[dict[str, Any]] = field(default_factory=list)
    clock_now: int = 0
    given: dict[int, dict[str, Any]] = field(default_factory=dict)
    done: int = 0
    taken: int = 0
    finished: bool = False

    def add(self, elements: list[tuple[int, Any, Any]]) -> None:
        self._step(elements=json.dumps(elements))

    def watermark(self, time: int) -> None:
        self._step(watermark=time)

    def clock(self, time: int) -> None:
        self.clock_now = time
        self._step()

    def take_panes(self) -> list[dict[str, Any]]:
        rows = [row for step in range(self.taken, self.done) for row in self._of(step, "panes")]
        self.taken = self.done
        return rows

    def dropped(self) -> int:
        return sum(self.given.get(step, {}).get("dropped", 0) for step in range(self.done))

    def close(self) -> None:
        """The query ends for all runs together."""

    def _step(self, **what: Any) -> None:
        if not self.finished:
            row = {"run": self.number, "step": self.done, "clock": self.clock_now}
            self.steps.append(row | what)
        self.done += 1

    def _of(self, step: int, what: str) -> list[dict[str, Any]]:
        return self.given.get(step, {}).get(what, [])


class SparkEngines:
    """Makes the runs, in the same order each time: to be written down, then to be compared."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._next = 0

    def make(self, windowing: Windowing) -> Run:
        if self._next == len(self._runs):
            self._runs.append(Run(self._next, windowing))
        run = self._runs[self._next]
        self._next += 1
        return run

    def execute(self) -> None:
        """Send every step that was written down through one query."""
        with tempfile.TemporaryDirectory(prefix="penstock-panes-") as directory:
            self._write(Path(directory, "steps"))
            spark = local_session(Path(directory, "spark"))
            try:
                rollups = {run.number: rollup_for(run.windowing) for run in self._runs}
                for row in _rows(spark, Path(directory), rollups):
                    self._runs[row["run"]].given[row["step"]] = json.loads(row["given"])
            finally:
                spark.stop()
        self._next = 0
        for run in self._runs:
            run.finished, run.done, run.taken, run.clock_now = True, 0, 0, 0

    def _write(self, directory: Path) -> None:
        """One file for the n-th step of all runs; their times say in which order they are read."""
        directory.mkdir()
        for step in range(max(len(run.steps) for run in self._runs)):
            rows = [run.steps[step] for run in self._runs if step < len(run.steps)]
            file = directory / f"{step:04}.json"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            os.utime(file, (1_000_000_000 + step, 1_000_000_000 + step))


def _rows(spark: Any, directory: Path, rollups: dict[int, Rollup]) -> list[Any]:
    steps = spark.readStream.schema(ROW).option("maxFilesPerTrigger", 1)
    arrivals = steps.json(str(directory / "steps")).mapInArrow(CaseCombining(rollups), SCHEMA)
    given = arrivals.groupBy(BUCKET).transformWithStateInPandas(
        CaseProcessor(rollups), "run int, step int, given string", "append", "none"
    )
    writer = given.writeStream.format("memory").queryName("given").outputMode("append")
    query = writer.option("checkpointLocation", str(directory / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    return spark.table("given").collect()


@dataclass
class CaseCombining:
    """What goes before the shuffle, each row by the rules of its own case."""

    rollups: dict[int, Rollup]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                if row["elements"] is None:
                    moved = Arrivals(
                        clock=row["clock"],
                        source="test",
                        position=row["step"],
                        newest=row["watermark"],
                    )
                    yield _packed(row["run"], pack_arrivals(moved))
                else:
                    yield from self._combined(row)

    def _combined(self, row: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        elements = json.loads(row["elements"])
        count = len(elements)
        table = pa.table(
            {
                PARTITION: pa.array([0] * count, pa.int32()),
                OFFSET: pa.array(range(count), pa.int64()),
                CLOCK: pa.array([row["clock"]] * count, pa.int64()),
                TIME: pa.array([time for time, _, _ in elements], pa.int64()),
                AHEAD: pa.array([False] * count),
                group(0): pa.array([json.dumps(key) for _, _, key in elements], pa.string()),
                value(0): pa.array([json.dumps(each) for _, each, _ in elements], pa.string()),
            }
        )
        for batch in PreShuffleCombiner(self.rollups[row["run"]], (row["run"],))(
            table.to_batches()
        ):
            (payload,) = batch.column(PAYLOAD).to_pylist()
            # The case says how far the watermark is, not its elements.
            told = replace(unpack_arrivals(payload), position=row["step"], newest=None)
            yield _packed(row["run"], pack_arrivals(told))


class CaseProcessor(PaneProcessor):
    """The pane processor, each bucket by the rules of its own case."""

    def __init__(self, rollups: dict[int, Rollup]) -> None:
        self._rollups = rollups

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: Any, rows: Any, _timers: Any
    ) -> Iterator[pd.DataFrame]:
        came = [unpack_arrivals(each) for frame in rows for each in frame[PAYLOAD]]
        run, step = int(key[0]), came[0].position
        given = list(self.take(self._rollups[run], came))
        panes = [row for each in given for row in _shown(each)]
        shown = {"panes": panes, "dropped": sum(len(each.late) for each in given)}
        yield pd.DataFrame({"run": [run], "step": [step], "given": [json.dumps(shown)]})


def _packed(run: int, payload: bytes) -> pa.RecordBatch:
    columns = [pa.array([run], pa.int32()), pa.array([payload], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=[BUCKET, PAYLOAD])


def _shown(given: BucketOutput) -> Iterator[dict[str, Any]]:
    for packed, pane in given.panes:
        yield from pane_rows(decode(packed)[0], pane, itemgetter(0))
