"""Write the rows of one task of a finished range to Kafka, exactly once, in Spark's workers.

A range may take longer than a transaction may last, so a task writes it in several. Rows are
computed while it waits for them, so none is left open where they have come slowly. With each goes
its position: how many rows are written, and a fingerprint of them. An attempt that comes later
takes the producer over, passes by so many rows, and compares.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from penstock.backbone.client.logrecord import Partition
from penstock.backbone.log.positions import PositionStore, position_group
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.errors import ConfigurationError
from penstock.pipelines.sink.kafkatask import TRANSACTION_TIMEOUT, BatchTask, Output, task_name

__all__ = ["WRITTEN", "RangeTask"]

WRITTEN = "written"
"""The column of what a task gives: how many rows are on the output's topic."""

COMMIT_INTERVAL = timedelta(seconds=20)
"""How long rows may have taken to come, and be sent, before they are committed."""


@dataclass(frozen=True, slots=True)
class RangeTask:
    """Writes the rows of one partition of a range; for ``mapInArrow``.

    The ``output`` has a name that no other range has. ``beside`` is a second topic, under which the
    fingerprint is kept. ConfigurationError ``replay.repeated``: an attempt gave other rows than the
    one before, of which some are written.
    """

    output: Output
    beside: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows; give one row, with their number."""
        context = TaskContext.get()
        if context is None:
            raise RuntimeError("only Spark's tasks write ranges")
        again = context.attemptNumber() > 0
        written = self.write(context.partitionId(), batches, again=again)
        yield pa.RecordBatch.from_pydict({WRITTEN: [written]})

    def write(
        self,
        number: int,
        batches: Iterator[pa.RecordBatch],
        *,
        again: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> int:
        """Write the rows of the task of this number that no earlier attempt has written.

        One that comes ``again`` commits as often as rows come: the one before may have waited for
        some for longer than a transaction lasts.
        """
        since, limit = clock(), 0.0 if again else COMMIT_INTERVAL.total_seconds()
        first = next((each for each in batches if each.num_rows), None)
        if first is None:
            return 0
        name, sender = task_name(self.output.name, number), BatchTask(self.output, 0, 0)
        seen, count = _Seen(), 0
        with TransactionalProducer(
            self.output.connection, name, timeout=TRANSACTION_TIMEOUT
        ) as producer:
            # Only now, when nothing of an earlier attempt can be under way any more.
            before = PositionStore(self.output.connection).read(name)
            left = before.get(self.output.at, 0)
            for rows in chain((first,), batches):
                count += self._counted(rows)
                passed, fresh = rows.slice(0, left), rows.slice(left)
                if passed.num_rows:
                    left -= passed.num_rows
                    seen.take(passed)
                    if not left and seen.fingerprint != before.get(self._mark):
                        raise self._others()
                if fresh.num_rows:
                    if not producer.in_transaction:
                        producer.begin()
                    sender.send(producer, fresh)
                    seen.take(fresh)
                    if clock() - since >= limit:
                        self._commit(producer, name, seen)
                        since = clock()
            if left:
                raise self._others()
            if producer.in_transaction:
                self._commit(producer, name, seen)
        return count

    @property
    def _mark(self) -> Partition:
        return self.beside, 0

    def _commit(self, producer: TransactionalProducer, name: str, seen: "_Seen") -> None:
        position = {self.output.at: seen.rows, self._mark: seen.fingerprint}
        producer.commit(position, group=position_group(name))

    def _counted(self, rows: pa.RecordBatch) -> int:
        if "topic" not in rows.schema.names:
            return int(rows.num_rows)
        return int(pc.sum(pc.equal(rows.column("topic"), self.output.topic)).as_py() or 0)

    def _others(self) -> ConfigurationError:
        return ConfigurationError(
            f"a task of the replay into {self.output.topic} was repeated and returned other rows",
            code="replay.repeated",
            detail="some of the earlier rows are already written",
            hint="run the replay again with another label: --as LABEL",
        )


class _Seen:
    """How many rows there were, and what they were, however they came in batches."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.sha256()

    def take(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.num_rows
        pairs = zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True)
        self._hash.update(b"".join(each or b"\0" for pair in pairs for each in pair))

    @property
    def fingerprint(self) -> int:
        """63 bits, which is what a position has room for."""
        return int.from_bytes(self._hash.digest()[:8]) >> 1
