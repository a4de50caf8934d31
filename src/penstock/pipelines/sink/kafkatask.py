"""Write the rows of one task of a batch to Kafka, exactly once; this runs in Spark's workers.

The rows and the position "batch N is written" are one transaction. A task that runs again, whoever
runs it, first takes over the producer of the one before (which ends what that left half done) and
then looks at the position: what was written is not written again.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import TaskContext

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import Partition
from penstock.backbone.log.positions import PositionReader, position_group
from penstock.backbone.log.sending import SendLimits
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.core.topic import Partitioning
from penstock.errors import ConfigurationError, FencedError

__all__ = [
    "ROWS",
    "SECONDS",
    "TASK_COUNTS",
    "TRANSACTION_TIMEOUT",
    "BatchTask",
    "KeptProducers",
    "Output",
    "older_checkpoint",
    "run_name",
    "taken_over",
    "task_name",
]

SECONDS, ROWS = "seconds", "rows"
"""The columns of what a task gives."""

TASK_COUNTS = f"{SECONDS} double, {ROWS} long"

TRANSACTION_TIMEOUT = timedelta(minutes=5)
"""How long the rows of one task may take; and how long they hold back readers of committed records
when their pipeline is killed and not started again."""

_KEPT_PRODUCERS = 32
"""The most producers in one worker; each needs half a megabyte and four threads."""
_KEPT_READERS = 8
_IDLE_SECONDS = 60.0
_LIMITS = SendLimits(linger=timedelta(milliseconds=5))


@dataclass(frozen=True, slots=True)
class Output:
    """Where a query writes: the cluster, and the topic of rows that name none themselves."""

    connection: Connection
    name: str
    """Of the query: pipelines that run side by side, and checkpoints made anew, have their own."""
    topic: str
    partitioning: Partitioning = "key"

    @property
    def at(self) -> Partition:
        """The partition under which all positions of the query are kept; every topic has it."""
        return self.topic, 0


def task_name(query: str, number: int) -> str:
    """Return what a task's producer and its position are called."""
    return f"{query}.{number}"


def run_name(query: str) -> str:
    """Return the name of the position that counts the runs of a query."""
    return f"{query}.run"


class KeptProducers:
    """The producers of one worker, kept open from batch to batch: making one costs 70 ms.

    A producer is taken out to be used and given back only when all went well, so that one that saw
    an error is never seen again. It is good for the batch after its last one, in the same run; if
    another worker wrote that, it was fenced.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, limit: int = _KEPT_PRODUCERS
    ) -> None:
        self._clock = clock
        self._limit = limit
        self._kept: dict[str, _Kept] = {}

    def take(self, name: str, *, run: int, batch: int) -> TransactionalProducer | None:
        """Return the producer that wrote the batch before; None: make one."""
        self._tidy()
        kept = self._kept.pop(name, None)
        if kept is None:
            return None
        if (kept.run, kept.batch) == (run, batch - 1):
            return kept.producer
        kept.producer.close()
        return None

    def give_back(
        self, name: str, producer: TransactionalProducer, *, run: int, batch: int
    ) -> None:
        """Keep a producer that has written this batch."""
        self._kept[name] = _Kept(producer, run, batch, self._clock())

    def skip(self, name: str, *, run: int, batch: int) -> None:
        """Take note that a task had nothing to write."""
        if (producer := self.take(name, run=run, batch=batch)) is not None:
            self.give_back(name, producer, run=run, batch=batch)

    def _tidy(self) -> None:
        """Close what nobody asks for."""
        by_age = sorted(self._kept, key=lambda name: self._kept[name].used_at, reverse=True)
        for place, name in enumerate(by_age):
            if place >= self._limit or self._clock() - self._kept[name].used_at > _IDLE_SECONDS:
                self._kept.pop(name).producer.close()


class _Kept(NamedTuple):
    producer: TransactionalProducer
    run: int
    batch: int
    used_at: float


_PRODUCERS = KeptProducers()


@lru_cache(maxsize=_KEPT_READERS)
def _reader(connection: Connection, name: str) -> PositionReader:
    # One that is not kept any more is closed when it is let go.
    return PositionReader(connection, name)


@dataclass(frozen=True)
class BatchTask:
    """Writes the rows of one partition of one batch; for ``mapInArrow``.

    It gives one row: the seconds that the writing itself took, without those in which the rows were
    computed, and how many rows came.

    Rows are (key, value), or (topic, key, value, headers); they are written in the order in which
    they come. Which rows come must not differ between two runs of a batch.

    - FencedError: another run of the query has taken over, or another attempt of this task.
    - ConfigurationError ``pipeline.older-checkpoint``: a later batch was written.
    - TransientError, DataError, ConfigurationError: as of the backbone; nothing was written.
    """

    output: Output
    batch: int
    run: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows, or nothing if that was done before."""
        context = TaskContext.get()
        if context is None:
            raise RuntimeError("only Spark's tasks write batches")
        counted = _Counted(batches)
        spent = self.write(context.partitionId(), counted)
        yield pa.RecordBatch.from_pydict({SECONDS: [spent], ROWS: [counted.rows]})

    def write(self, number: int, batches: Iterator[pa.RecordBatch]) -> float:
        """Write the rows of the task of this number; return the seconds that took."""
        name = task_name(self.output.name, number)
        first = next((each for each in batches if each.num_rows), None)
        if first is None:
            _PRODUCERS.skip(name, run=self.run, batch=self.batch)
            return 0.0
        watch = _Watch()
        producer = _PRODUCERS.take(name, run=self.run, batch=self.batch) or self._take_over(name)
        if producer is None:
            # Read to the end: Spark throws a worker away that leaves rows behind.
            deque(batches, maxlen=0)
            return watch.seconds
        with ExitStack() as undoing:
            undoing.push(producer)
            producer.begin()
            for rows in chain((first,), watch.paused(batches)):
                self.send(producer, rows)
            self.commit(producer, name)
            undoing.pop_all()
        _PRODUCERS.give_back(name, producer, run=self.run, batch=self.batch)
        return watch.seconds

    def send(self, producer: TransactionalProducer, rows: pa.RecordBatch) -> None:
        """Hand rows to the producer, in order."""
        keys, values = rows.column("key").to_pylist(), rows.column("value").to_pylist()
        if "topic" in rows.schema.names:
            topics, headers = rows.column("topic").to_pylist(), _headers(rows.column("headers"))
            for topic, key, value, marks in zip(topics, keys, values, headers, strict=True):
                producer.send(topic, key=key, value=value, headers=marks)
        elif self.output.partitioning == "key":
            producer.send_all(self.output.topic, zip(keys, values, strict=True))
        else:
            for key, value in zip(keys, values, strict=True):
                producer.send(
                    self.output.topic, key=key, value=value, partition=self.output.partitioning
                )

    def commit(self, producer: TransactionalProducer, name: str) -> None:
        """Make the rows visible, and this batch the last that was written."""
        producer.commit({self.output.at: self.batch + 1}, group=position_group(name))

    def _take_over(self, name: str) -> TransactionalProducer | None:
        """Return a new producer; None if the batch was written before."""
        # Before, so that a later run is not disturbed; and after, when whoever begins one now will
        # fence this producer.
        self._refuse_if_late()
        producer = TransactionalProducer(
            self.output.connection, name, timeout=TRANSACTION_TIMEOUT, limits=_LIMITS
        )
        with ExitStack() as undoing:
            undoing.push(producer)
            self._refuse_if_late()
            # Only now, when nothing of an earlier attempt can be under way any more.
            written = self._position(name) - 1
            if written > self.batch:
                raise older_checkpoint(self.output.topic, written=written, known=self.batch)
            if written == self.batch:
                return None
            undoing.pop_all()
        return producer

    def _refuse_if_late(self) -> None:
        if self._position(run_name(self.output.name)) > self.run:
            raise taken_over()

    def _position(self, name: str) -> int:
        return _reader(self.output.connection, name).read(self.output.at)


def taken_over() -> FencedError:
    """Return the end of a run that is not the last one."""
    return FencedError(
        "another run of the same pipeline has taken over",
        code="pipeline.taken-over",
        hint="run only one of them",
    )


def older_checkpoint(
    topic: str, *, written: int, known: int, pipeline: str = "NAME"
) -> ConfigurationError:
    """Return the refusal of a checkpoint that is behind what its query has written."""
    return ConfigurationError(
        f"{topic} is ahead of the checkpoint of the pipeline that writes it",
        code="pipeline.older-checkpoint",
        detail=f"batch {written} was begun, the checkpoint has batch {known}: an older copy?",
        hint=f"put the newest checkpoint back, or recompute it: penstock rebuild {pipeline} "
        "(--append for a stream: what was written stays)",
    )


class _Counted(Iterator[pa.RecordBatch]):
    """Counts the rows that pass."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __next__(self) -> pa.RecordBatch:
        found = next(self._batches)
        self.rows += found.num_rows
        return found


class _Watch:
    """Measures time from now on, but not while it waits for rows."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._waited = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began - self._waited

    def paused(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while True:
            began = time.perf_counter()
            rows = next(batches, None)
            self._waited += time.perf_counter() - began
            if rows is None:
                return
            yield rows


def _headers(column: Any) -> list[list[tuple[str, bytes | None]]]:
    """Return the headers of each row, by way of two lists for all rows: no object for each."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    pairs = column.flatten()
    found = list(zip(pairs.field(0).to_pylist(), pairs.field(1).to_pylist(), strict=True))
    counts = column.value_lengths().fill_null(0).to_pylist()
    end, split = 0, []
    for count in counts:
        split.append(found[end : end + count])
        end += count
    return split
