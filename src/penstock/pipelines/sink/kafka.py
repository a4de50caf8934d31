"""Write the batches of a query to Kafka, exactly once: the driver's part.

Spark repeats a batch that it does not know to be done, with the same rows. Which task gets which
row must be the same then, whatever became of the machine: rows are split by key into a number of
tasks that is kept with the checkpoint, or are left where the plan's own state has put them. What a
task does is in ``kafkatask``.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pyarrow as pa
from msgspec import structs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.positions import PositionReader, position_group
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.errors import PenstockError, TransientError
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.sink.begun import BatchMarker, Begun, fingerprint
from penstock.pipelines.sink.continuity import forgotten, half_written, plan_of
from penstock.pipelines.sink.kafkatask import (
    ROWS,
    SECONDS,
    TASK_COUNTS,
    TRANSACTION_TIMEOUT,
    BatchTask,
    Output,
    run_name,
    taken_over,
    task_name,
)
from penstock.pipelines.spark.session import PROGRESS_KEPT, shuffle_partitions

__all__ = ["ComputedBatch", "Continued", "OnceSink", "SinkHandle", "end_run", "query_name"]

_NUMBER = "_penstock_number"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_QUERY_ID = "sql.streaming.queryId"
_FINISH_LIMIT = timedelta(seconds=5)
"""How long a stop waits for the batch that is being written."""
_RELEASE_LIMIT = timedelta(seconds=5)
"""How long a stop may spend on the transactions that it left open."""


@dataclass(slots=True)
class SinkHandle:
    """What others may read from the sink of a query, and ask of it."""

    seconds: float = 0.0
    """How long its tasks have been writing, all together."""
    written: dict[int, int] = field(default_factory=dict)
    """How many rows batches had that were computed here; whoever counts one takes it out."""
    finish: Callable[[], None] = lambda: None
    """Begins no further batch; returns when the current one is written, or after a time-out."""

    def wrote(self, batch: int, rows: int) -> None:
        """Note how many rows a batch had."""
        self.written[batch] = rows
        if len(self.written) > PROGRESS_KEPT:
            del self.written[min(self.written)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """What a sink must know of earlier runs, and records for later ones."""

    name: str
    """Of the pipeline and its generation."""
    checkpoint: str
    program: str = ""
    """A fingerprint of what computes the rows."""
    begun: Begun | None = None
    """The batch that was begun last by an earlier run of this checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedBatch:
    """A batch whose output is computed when it is to be written, from the rows of its input."""

    rows: DataFrame
    tasks: int | None
    made_of: str = ""
    """A fingerprint of what went into it beside its input."""
    release: Callable[[], object] = lambda: None


class OnceSink:
    """Writes batch after batch; to be given to ``foreachBatch``.

    ``tasks`` is into how many the rows are split, by key and in the order of the plan. None leaves
    them where they are, which is right only if the last thing in the plan that moves rows is its
    state. Without a ``past`` nothing is written down, and nobody can go on from here. ``guard`` is
    called once this run has taken over, and raises where it should not have. ``handle`` is
    kept up to date. ``compute`` makes the rows that are written of those that the query gives, and
    says how they are split.

    The first batch may be one that an earlier run has begun. It is split as it was then. If another
    program began it, and some of its tasks have written, that is a ConfigurationError
    ``pipeline.half-written``.
    """

    task = BatchTask

    def __init__(
        self,
        output: Output,
        *,
        tasks: int | None,
        past: Continued | None = None,
        guard: Callable[[], None] = lambda: None,
        handle: SinkHandle | None = None,
        compute: Callable[[DataFrame, int], ComputedBatch] | None = None,
    ) -> None:
        self._output = output
        self._tasks = tasks
        self._compute = compute
        self._past = past
        self._guard = guard
        self._handle = handle or SinkHandle()
        self._handle.finish = self._finish
        self._state = threading.Condition()
        self._busy = self._finished = False
        self._last: Begun | None = None
        self._query = ""
        self._run = 0
        self._marker: BatchMarker | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write one batch; what a task raises ends the query."""
        with self._state:
            if self._finished:
                raise TransientError("the pipeline is being stopped", code="pipeline.stopping")
            self._busy, self._last = True, None
        try:
            self._write(rows, batch)
        finally:
            with self._state:
                self._busy = False
                self._state.notify_all()

    def _write(self, rows: DataFrame, batch: int) -> None:
        spark = rows.sparkSession
        first = not self._run
        if first:
            self._begin(spark, batch)
        given = ComputedBatch(rows=rows, tasks=self._tasks)
        if self._compute is not None:
            given = self._compute(rows, batch)
        try:
            if self._done_before(batch):
                # The plan is run for its state alone.
                given.rows.mapInArrow(_drained, f"{SECONDS} double").collect()
            else:
                self._commit(spark, given, batch, first=first)
        finally:
            given.release()

    def _commit(
        self, spark: SparkSession, given: ComputedBatch, batch: int, *, first: bool
    ) -> None:
        program = self._program(given)
        tasks = self._split_before(batch, program, given.tasks) if first else given.tasks
        task = self.task(self._output, batch, self._run)
        try:
            begun = self._mark(Files(spark), batch, program, tasks)
            with _fixed_plan(spark):
                counts = _split(given.rows, tasks).mapInArrow(task, TASK_COUNTS).collect()
            self._handle.seconds += sum(row[SECONDS] for row in counts)
            if self._compute is not None:
                self._handle.wrote(batch, sum(row[ROWS] for row in counts))
            self._last = begun
        except BaseException:
            self._release(tasks or shuffle_partitions(spark))
            raise

    def _program(self, given: ComputedBatch) -> str:
        program = self._past.program if self._past else ""
        return fingerprint(program, given.made_of) if given.made_of else program

    def _finish(self) -> None:
        with self._state:
            self._finished = True
            self._state.wait_for(lambda: not self._busy, _FINISH_LIMIT.total_seconds())
            last, self._last = self._last, None
        if last is not None and self._marker is not None:
            # Spark may be stopped before it notes the end itself, and another program come next.
            with suppress(PenstockError):
                self._marker.mark(structs.replace(last, done=True))

    def _begin(self, spark: SparkSession, batch: int) -> None:
        """Take over from earlier runs."""
        self._query = spark.sparkContext.getLocalProperty(_QUERY_ID) or ""
        # A checkpoint that was deleted and made again counts its batches from 0 again.
        self._output = replace(self._output, name=query_name(self._output.name, self._query))
        if self._interrupted(batch) is not None and _run_before(self._output) < 0:
            raise forgotten(self._output.topic, batch=batch)
        self._run = _begin_run(self._output)
        self._guard()

    def _interrupted(self, batch: int) -> Begun | None:
        """Return what an earlier run has begun of this batch and may not have finished."""
        begun = self._past.begun if self._past else None
        return begun if begun is not None and begun.batch == batch and not begun.done else None

    def _split_before(self, batch: int, program: str, tasks: int | None) -> int | None:
        """Return into how many tasks a batch is split, where an earlier run may have begun it."""
        begun = self._interrupted(batch)
        if begun is None:
            return tasks
        if begun.tasks > 1 and begun.program != program:
            self._refuse_half_written(batch, begun.tasks)
            return tasks
        return begun.tasks or None

    def _done_before(self, batch: int) -> bool:
        begun = self._past.begun if self._past else None
        return begun is not None and begun.batch == batch and begun.done

    def _refuse_half_written(self, batch: int, tasks: int) -> None:
        # Whoever is still about to commit is fenced before anybody looks.
        _end_tasks(self._output, tasks)
        for number in range(tasks):
            name = task_name(self._output.name, number)
            with closing(PositionReader(self._output.connection, name)) as reader:
                if reader.read(self._output.at) > batch:
                    raise half_written(self._output.topic, batch=batch, tasks=tasks)

    def _mark(self, files: Files, batch: int, program: str, tasks: int | None) -> Begun | None:
        """Write down that the batch is begun, before any of its tasks can commit."""
        if self._past is None:
            return None
        if self._marker is None:
            self._marker = _marker(self._output.connection, self._past.name, self._renew)
        begun = Begun(
            query=self._query,
            batch=batch,
            plan=plan_of(files, self._past.checkpoint, batch),
            program=program,
            tasks=tasks or 0,
        )
        self._marker.mark(begun)
        return begun

    def _renew(self) -> None:
        """Write the number of this run again, which the cluster would forget."""
        if _run_before(self._output) > self._run:
            raise taken_over()
        _begin_run(self._output, number=self._run)

    def _release(self, tasks: int) -> None:
        """End the transactions that tasks were stopped in, which readers would wait for.

        The run ends first, so that a task that Spark has given up, and that is still there, begins
        nothing more. Where this fails they end with the next start, or when their time is over.
        """
        output = replace(self._output, connection=self._output.connection.within(_RELEASE_LIMIT))
        with suppress(PenstockError):
            end_run(output, tasks=tasks, after=self._run)


_MARKERS: dict[str, BatchMarker] = {}
"""The last of each name: Spark holds on to sinks whose queries have ended."""


def _marker(connection: Connection, name: str, renew: Callable[[], None]) -> BatchMarker:
    if (before := _MARKERS.pop(name, None)) is not None:
        before.close()
    _MARKERS[name] = BatchMarker(connection, name, renew=renew)
    return _MARKERS[name]


def _drained(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    deque(batches, maxlen=0)
    yield pa.RecordBatch.from_pydict({SECONDS: [0.0]})


def _split(rows: DataFrame, tasks: int | None) -> DataFrame:
    """Return the rows with those of a key in one task, in the order of the plan."""
    if tasks is None:
        return rows
    key = F.coalesce("key", "value")
    numbered = rows.withColumn(_NUMBER, F.monotonically_increasing_id())
    return numbered.repartition(tasks, key).sortWithinPartitions(_NUMBER).drop(_NUMBER)


def query_name(name: str, query: str) -> str:
    """Return the name of a query with this id, under which its positions are kept."""
    return f"{name}.{query}"


def end_run(output: Output, *, tasks: int, after: int | None = None) -> None:
    """End the run of a query: nothing of it is under way then, and its tasks write no more.

    Nothing happens if the last run is not this one; without ``after`` whichever it is ends.
    """
    if _begin_run(output, after=after):
        _end_tasks(output, tasks)


def _end_tasks(output: Output, tasks: int) -> None:
    for number in range(tasks):
        name = task_name(output.name, number)
        TransactionalProducer(output.connection, name, timeout=TRANSACTION_TIMEOUT).close()


def _run_before(output: Output) -> int:
    """Return the number of the last run; -1 if there was none, or it was forgotten."""
    with closing(PositionReader(output.connection, run_name(output.name))) as reader:
        return reader.read(output.at)


def _begin_run(output: Output, *, after: int | None = None, number: int = 0) -> int:
    """Return the number of a new run; tasks of earlier ones take nothing over any more.

    0, and nothing is begun, if the run before is not the one that it is to come ``after``. Numbers
    follow the clock, so that none comes again where the cluster has forgotten the last.
    """
    name = run_name(output.name)
    with TransactionalProducer(output.connection, name) as producer:
        before = max(0, _run_before(output))
        if after not in (None, before):
            return 0
        run = number or max(before + 1, round(time.time() * 1000))
        producer.begin()
        producer.commit({output.at: run}, group=position_group(name))
    return run


@contextmanager
def _fixed_plan(spark: SparkSession) -> Iterator[None]:
    """Keep Spark from choosing the number of tasks by what it sees."""
    before = spark.conf.get(_ADAPTIVE)
    spark.conf.set(_ADAPTIVE, "false")
    try:
        yield
    finally:
        spark.conf.set(_ADAPTIVE, str(before))
