"""Follows the topic of a table: all of it first, then what has changed."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import RawRecord
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import Offset
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Table
from penstock.errors import TransientError
from penstock.pipelines.gate.gate import codec_gate
from penstock.pipelines.lookups.segment import GONE, KEY
from penstock.pipelines.lookups.store import LookupStore

__all__ = ["TableFollower"]

TOMBSTONES_LAST = timedelta(hours=12)
"""After so long without a look the topic is read anew: a cluster forgets deletions after a day."""

_CHUNK = 250_000
"""How many records are decoded together."""


class TableFollower:
    """Keeps a table in a store, as far as its topic went when it was last looked at.

    A record that is not valid changes nothing: the row before it stays. Memory is bounded by a
    chunk of records; the rest is on disk. Errors are those of the backbone; the next look goes on
    from where this one came.
    """

    def __init__(
        self,
        connection: Connection,
        table: Table[Any],
        directory: Path,
        *,
        stop: threading.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop = stop or threading.Event()
        self._topics = Topics(connection)
        self._reader = LogReader(connection)
        self._topic = table.topic.name
        self._gate = codec_gate(table)
        self._clock = clock
        self._read: dict[int, int] = {}
        self._identity = ""
        self._looked_at = clock()
        self.store = LookupStore(directory, pa.schema(list(self._gate.types.items())))

    def catch_up(self) -> None:
        """Take everything that is committed on the topic now.

        TransientError ``pipeline.stopping`` if it is to stop meanwhile.
        """
        now = self._clock()
        ends = self._topics.ends(self._topic, committed=True)
        identity = self._topics.identity(self._topic)
        if identity != self._identity or now - self._looked_at > TOMBSTONES_LAST.total_seconds():
            # What was read has nothing to do with a topic that was made again.
            self.store.clear()
            self._read, self._identity = {}, identity
        starts = {number: self._read.get(number, low) for number, (low, _) in ends.items()}
        ahead = {number: high for number, (_, high) in ends.items() if high > starts[number]}
        if ahead:
            # Compaction may have taken the record at an offset away; that is no loss.
            batches = self._reader.batches(
                self._topic,
                start=Offset({number: starts[number] for number in ahead}),
                end=Offset(ahead),
                partitions=sorted(ahead),
                when_trimmed="skip",
                stop=self._stop,
            )
            for chunk in _chunks(batches):
                self.store.put(self._rows(chunk))
                # In the order of the log: the last one of a partition counts.
                self._read |= {each.partition() or 0: (each.offset() or 0) + 1 for each in chunk}
        if self._stop.is_set():
            raise TransientError("the pipeline is being stopped", code="pipeline.stopping")
        self._read |= {number: high for number, (_, high) in ends.items()}
        self._looked_at = now

    def _rows(self, records: Sequence[RawRecord]) -> pa.RecordBatch:
        keys = pa.array([each.key() for each in records], pa.binary())
        values = pa.array([each.value() for each in records], pa.binary())
        given = pa.RecordBatch.from_arrays([keys, values, keys], ["key", "value", "beside"])
        (judged,) = self._gate([given])
        *fields, key, refused = judged.columns
        names = [KEY, GONE, *self._gate.types]
        rows = pa.RecordBatch.from_arrays([key, refused.is_null(), *fields], names)
        # True: not a record. False: a record. Null: its key is deleted.
        return rows.filter(pc.invert(pc.fill_null(refused, False)))  # noqa: FBT003


def _chunks(batches: Iterator[Sequence[RawRecord]]) -> Iterator[list[RawRecord]]:
    waiting: list[RawRecord] = []
    for batch in batches:
        waiting.extend(batch)
        if len(waiting) >= _CHUNK:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
