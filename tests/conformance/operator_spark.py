"""Machines of operators on Spark: real Structured Streaming, with its state store.

One query serves all cases: a case is a key of its state, and its next moment is a file that the
query finds. Each moment makes the machine anew from Spark's state. Many cases may wait at a time.
"""

import base64
import json
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.core.operators.operator import Plan
from penstock.core.panes.packing import encode
from penstock.core.panes.pages import PagedStore
from penstock.core.wiring.results import ResultDestination
from penstock.pipelines.operators.hosting import Hosting
from penstock.pipelines.operators.routing import Routed, unpack
from penstock.pipelines.rollups.processor import MapStore
from penstock.pipelines.spark.session import local_session

__all__ = ["LATE", "LETTERS", "RESULTS", "CaseQuery", "Written", "arrival", "hosting_of", "mark"]

RESULTS, LATE, LETTERS = "results", "late", "letters"
"""The topics of what a case gives."""
DONE, RAISED = "done", "raised"
ROW = "run string, step int, end boolean, hosting string, payload string"
GIVEN = "run string, step int, topic string, key binary, value binary, headers string"
LIMIT_SECONDS = 300


class Written(NamedTuple):
    """A record that a machine wrote."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


def hosting_of(plan: Plan) -> Hosting:
    """Return what makes the machines of a case that has one operator, into a stream."""
    to = ResultDestination(
        part="case",
        inputs=plan.inputs,
        record=plan.result("found", "stream"),
        topic=RESULTS,
        table=False,
        round_robin=False,
        marked_partitions=0,
        as_it_was=False,
        max_record_bytes=1 << 20,
        late_topic=LATE,
        dead_letters=LETTERS,
    )
    return Hosting(plan, to, tuple(dict.fromkeys(each.topic for each in plan.inputs)))


def arrival(
    number: int, offset: int, key: bytes | None, value: bytes | None, time: int | None
) -> Routed:
    """Return a record of the n-th topic; its time is also when it was written."""
    moment = time or 0
    return Routed(moment, 1, number, 0, offset, offset, 0, False, key, value, time)  # noqa: FBT003


def mark(number: int, time: int) -> Routed:
    """Return how far event time is in the n-th topic."""
    return Routed(time, 1, number, 0, -1, -1, 0, True, None, None, time)  # noqa: FBT003


class CaseQuery:
    """A session of its own with the query; ``ask`` may be called from several threads."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="penstock-cases-")
        home = Path(self._home.name)
        self._steps = home / "steps"
        self._steps.mkdir()
        self._spark = local_session(home / "spark")
        self._lock = threading.Lock()
        self._count = 0
        self._waiting: dict[int, Future[list[Written]]] = {}
        rows = self._spark.readStream.schema(ROW).json(str(self._steps))
        given = rows.groupBy("run").transformWithStateInPandas(
            CaseProcessor(), GIVEN, "append", "none"
        )
        writer = given.writeStream.foreachBatch(self._take).outputMode("append")
        self._query = writer.option("checkpointLocation", str(home / "checkpoint")).start()

    def ask(
        self, run: str, hosting: Hosting, came: Sequence[Routed], *, end: bool = False
    ) -> list[Written]:
        """Return what the machine of a case writes for a moment; RuntimeError if it raises."""
        with self._lock:
            self._count += 1
            step = self._count
            future = self._waiting[step] = Future()
        row = {
            "run": run,
            "step": step,
            "end": end,
            "hosting": base64.b64encode(cloudpickle.dumps(hosting)).decode(),
            "payload": base64.b64encode(encode(list(came))).decode(),
        }
        unfinished = self._steps.parent / f"{step}.part"
        unfinished.write_text(json.dumps(row) + "\n", encoding="utf-8")
        unfinished.rename(self._steps / f"{step}.json")
        return future.result(LIMIT_SECONDS)

    def close(self) -> None:
        """End the session."""
        self._query.stop()
        self._spark.stop()
        self._home.cleanup()

    def _take(self, frame: DataFrame, _batch: int) -> None:
        found: dict[int, list[Written]] = defaultdict(list)
        raised: dict[int, str] = {}
        for row in frame.collect():
            if row["topic"] == RAISED:
                raised[row["step"]] = bytes(row["value"]).decode()
            elif row["topic"] != DONE:
                headers = [(name, text.encode()) for name, text in json.loads(row["headers"])]
                found[row["step"]].append(
                    Written(row["topic"], _bytes(row["key"]), _bytes(row["value"]), headers)
                )
            else:
                found[row["step"]] += ()
        for step in {*found, *raised}:
            future = self._waiting.pop(step)
            if step in raised:
                future.set_exception(RuntimeError(raised[step]))
            else:
                future.set_result(found[step])


class CaseProcessor(StatefulProcessor):
    """Hosts the machine of the case that a key names."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Begin a batch."""
        self._records = MapStore(handle.getMapState("case", "key binary", "value binary"))

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: Any, rows: Iterator[Any], _timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        """Let the machine take a moment."""
        (run,) = key
        for frame in rows:
            for row in frame.to_dict("records"):
                step = row["step"]
                try:
                    found = self._given(row)
                except Exception as error:  # noqa: BLE001 - the other cases go on
                    text = f"{type(error).__name__}: {error}".encode()
                    found = [(run, step, RAISED, None, text, "[]")]
                done = (run, step, DONE, None, None, "[]")
                names = ["run", "step", "topic", "key", "value", "headers"]
                yield pd.DataFrame([*found, done], columns=names, dtype=object)

    def _given(self, row: dict[Any, Any]) -> list[tuple[Any, ...]]:
        hosting: Hosting = cloudpickle.loads(base64.b64decode(row["hosting"]))
        store = PagedStore(self._records)
        hosted = hosting.host(store)
        came = unpack(base64.b64decode(row["payload"]))
        assert not isinstance(came, int)
        found = []
        for records in hosted.take(came, clock=0):
            hosted.machine.flush()
            hosted.machine.trim(0)
            store.flush()
            found += records
        if row["end"]:
            found += hosted.finish(clock=0)
        return [
            (
                row["run"],
                row["step"],
                each.topic,
                each.key,
                each.value,
                json.dumps([(name, text.decode()) for name, text in each.headers]),
            )
            for each in found
        ]

    def close(self) -> None:
        """End a batch."""


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
