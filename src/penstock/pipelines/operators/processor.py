"""The machine of an operator in Spark's state store: one bucket for each of its partitions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.core.panes.pages import PagedStore
from penstock.core.panes.store import MemoryStore
from penstock.core.rollup.wire import OutgoingRecord
from penstock.pipelines.operators.hosting import (
    AHEAD,
    DROPPED,
    LATE,
    REFUSED,
    Hosted,
    Hosting,
)
from penstock.pipelines.operators.routing import BUCKET, PAYLOAD, Routed, unpack
from penstock.pipelines.rollups.gcpause import collection_paused
from penstock.pipelines.rollups.processor import NEWEST, WATERMARK, MapStore, outgoing

__all__ = ["FACTS", "BatchMachines", "OperatorProcessor", "PassingMachine", "count_results"]

FACTS = (LATE, AHEAD, DROPPED, REFUSED)


class OperatorProcessor(StatefulProcessor):
    """Takes the arrivals of a bucket and gives records for Kafka; its state is in one map."""

    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Begin a batch in one partition of the state."""
        self._records = MapStore(handle.getMapState("operator", "key binary", "value binary"))

    def handleInputRows(  # noqa: N802 - Spark's name
        self, _key: Any, rows: Iterator[Any], _timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        """Let the machine take everything that came for its bucket in this batch, in order."""
        with collection_paused():
            found = [unpack(payload) for frame in rows for payload in frame[PAYLOAD]]
            beats = [each for each in found if isinstance(each, int)]
            came = sorted(_routed(found), key=_order)
            clock = max([*beats, *(each.clock for each in came)])
            store = PagedStore(self._records)
            hosted = self._hosting.host(store)
            for given in hosted.take(came, clock=clock):
                hosted.machine.flush()
                hosted.machine.trim(0)
                store.flush()
                yield outgoing(given)
            yield outgoing([_progress_record(hosted)])

    def close(self) -> None:
        """End a batch; Spark keeps the state."""


@dataclass(frozen=True, slots=True)
class BatchMachines:
    """A function for ``mapInArrow`` over a range: rows by bucket, each bucket's in order.

    What is in memory is the state of one bucket at a time.
    """

    hosting: Hosting

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the final results."""
        bucket: int | None = None
        hosted, clock = self.hosting.host(MemoryStore()), 0
        for batch in batches:
            for number, came in _by_bucket(batch):
                if number != bucket:
                    if bucket is not None:
                        yield arrow(hosted.finish(clock=clock))
                    bucket, hosted = number, self.hosting.host(MemoryStore())
                clock = max([clock, *(each.clock for each in came)])
                for given in hosted.take(came, clock=clock):
                    yield arrow(given)
        if bucket is not None:
            yield arrow(hosted.finish(clock=clock))


@dataclass(frozen=True, slots=True)
class PassingMachine:
    """A function for ``mapInArrow`` for an operator that remembers nothing."""

    hosting: Hosting

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of each row."""
        hosted = self.hosting.host(MemoryStore())
        for batch in batches:
            came = [each for _, routed in _by_bucket(batch) for each in routed]
            if came:
                for given in hosted.take(came, clock=came[-1].clock):
                    yield arrow(given)
        yield arrow([_progress_record(hosted)])


def count_results(rows: DataFrame, name: str) -> DataFrame:
    """Return the records alone; what the buckets said is in the query's progress under a name.

    The watermark is that of the bucket that is furthest behind.
    """
    sums = [F.sum(_fact(each)).alias(each) for each in FACTS]
    times = [F.min(_fact(WATERMARK)).alias(WATERMARK), F.max(_fact(NEWEST)).alias(NEWEST)]
    return rows.observe(name, *sums, *times).where("topic != ''")


def arrow(records: Iterable[OutgoingRecord]) -> pa.RecordBatch:
    """Return records as a batch with the columns that the sink takes."""
    found = list(records)
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers = [[{"key": name, "value": text} for name, text in each.headers] for each in found]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([each.topic for each in found], pa.string()),
            pa.array([each.key for each in found], pa.binary()),
            pa.array([each.value for each in found], pa.binary()),
            pa.array(headers, pa.list_(header)),
        ],
        ["topic", "key", "value", "headers"],
    )


def _by_bucket(batch: pa.RecordBatch) -> Iterator[tuple[int, list[Routed]]]:
    """Yield the arrivals of a batch, those of a bucket that follow each other together."""
    number: int | None = None
    came: list[Routed] = []
    numbers, payloads = batch.column(BUCKET).to_pylist(), batch.column(PAYLOAD).to_pylist()
    for at, payload in zip(numbers, payloads, strict=True):
        if at != number:
            if number is not None:
                yield number, came
            number, came = at, []
        came += _routed([unpack(payload)])
    if number is not None:
        yield number, came


def _routed(found: Iterable[list[Routed] | int]) -> list[Routed]:
    return [each for several in found if not isinstance(several, int) for each in several]


def _order(each: Routed) -> tuple[int, ...]:
    return each[:5]


def _progress_record(hosted: Hosted) -> OutgoingRecord:
    """Return what a bucket says of itself: a record for no topic, which is taken away."""
    facts: dict[str, int] = {each: hosted.counts[each] for each in FACTS}
    if hosted.watermark is not None:
        facts[WATERMARK] = hosted.watermark
    if hosted.machine.newest is not None:
        facts[NEWEST] = hosted.machine.newest
    return OutgoingRecord("", None, msgspec.json.encode(facts))


def _fact(fact: str) -> Column:
    value = f"get_json_object(cast(value as string), '$.{fact}')"
    return F.expr(f"case when topic = '' then cast({value} as bigint) end")
