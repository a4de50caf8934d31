"""The pane machine in Spark's state store: one bucket for each of its partitions."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.core.panes.arrivals import Arrivals, unpack_arrivals
from penstock.core.panes.bucket import Bucket, BucketOutput
from penstock.core.panes.pages import PagedStore
from penstock.core.panes.panecounts import AHEAD, LATE, PANE_KINDS, pane_counts
from penstock.core.panes.times import BEGINNING
from penstock.core.rollup.resolve import Rollup
from penstock.core.rollup.wire import Destination, OutgoingRecord, PaneWire
from penstock.pipelines.rollups.combining import PAYLOAD
from penstock.pipelines.rollups.gcpause import collection_paused

__all__ = [
    "DUE_KEYS",
    "NEWEST",
    "OUTGOING",
    "WATERMARK",
    "MapStore",
    "PaneProcessor",
    "bucket_facts",
    "count_panes",
    "outgoing",
]

WATERMARK, NEWEST = "watermark", "newest"
"""What a batch says of event time, in microseconds."""

DUE_KEYS = 20_000
"""About so many keys that are due are looked at together, with their windows and panes."""

OUTGOING = (
    "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
)


class PaneProcessor(StatefulProcessor):
    """Takes the arrivals of a bucket and gives records for Kafka; its state is in one map."""

    def __init__(self, rollup: Rollup, to: Destination) -> None:
        self._rollup = rollup
        self._to = to

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Begin a batch in one partition of the state."""
        self._records = MapStore(handle.getMapState("bucket", "key binary", "value binary"))

    def handleInputRows(  # noqa: N802 - Spark's name
        self, _key: Any, rows: Iterator[Any], _timer_values: Any
    ) -> Iterator[pd.DataFrame]:
        """Let the bucket take everything that came for it in this batch."""
        with collection_paused():
            came = [unpack_arrivals(each) for frame in rows for each in frame[PAYLOAD]]
            wire = PaneWire(self._rollup, self._to)
            for given in self.take(self._rollup, came):
                yield outgoing([*wire.records(given), bucket_facts(given)])

    def take(self, rollup: Rollup, came: Iterable[Arrivals]) -> Iterator[BucketOutput]:
        """Yield what the bucket gives for these arrivals, in slices, its state written back.

        However many windows end together, no more than a slice of them is in memory.
        """
        store = PagedStore(self._records)
        bucket = Bucket(rollup.machine(), rollup.rule, store, order=store.place)
        given = bucket.take(came, limit=DUE_KEYS)
        while bucket.pending:
            yield given
            bucket.flush()
            bucket.trim(0)
            store.flush()
            given = bucket.more(DUE_KEYS)
        bucket.flush()
        store.flush()
        yield given

    def close(self) -> None:
        """End a batch; Spark keeps the state."""


def bucket_facts(given: BucketOutput) -> OutgoingRecord:
    """Return what a bucket says of itself, in a record for no topic; see ``count_panes``."""
    facts = dict(pane_counts(given))
    if given.watermark != BEGINNING:
        facts[WATERMARK] = given.watermark
    if given.newest is not None:
        facts[NEWEST] = given.newest
    return OutgoingRecord("", None, msgspec.json.encode(facts))


def count_panes(rows: DataFrame, name: str) -> DataFrame:
    """Return the records alone; what the buckets said is in the query's progress under a name.

    The watermark is that of the bucket that is furthest behind.
    """
    sums = [F.sum(_fact(each)).alias(each) for each in (*PANE_KINDS, LATE, AHEAD)]
    times = [F.min(_fact(WATERMARK)).alias(WATERMARK), F.max(_fact(NEWEST)).alias(NEWEST)]
    return rows.observe(name, *sums, *times).where("topic != ''")


def _fact(fact: str) -> Column:
    value = f"get_json_object(cast(value as string), '$.{fact}')"
    return F.expr(f"case when topic = '' then cast({value} as bigint) end")


def outgoing(records: Iterable[OutgoingRecord]) -> pd.DataFrame:
    """Return records as a frame with the columns that Spark's Kafka sink takes."""
    names = ["topic", "key", "value", "headers"]
    rows = [(*row[:3], _headers(row.headers)) for row in records]
    return pd.DataFrame(rows, columns=names, dtype=object)


@lru_cache(maxsize=1024)
def _headers(given: tuple[tuple[str, bytes], ...]) -> list[dict[str, Any]]:
    """Return headers as Spark takes them; few panes have any of their own."""
    return [{"key": name, "value": text} for name, text in given]


class MapStore:
    """A store in Spark's state, in which every call is a round trip to the JVM."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, key: bytes) -> bytes | None:
        """Return a record, or None."""
        found = self._state.getValue((key,))
        return None if found is None else bytes(found[0])

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""
        self._state.updateValue((key,), (value,))

    def delete(self, key: bytes) -> None:
        """Delete a record that may be there."""
        self._state.removeKey((key,))
