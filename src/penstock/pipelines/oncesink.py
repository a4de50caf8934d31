"""The batches of a query into Kafka, exactly once; this is what the driver does.

Spark repeats a batch that it does not know to be done, with the same rows. Which task gets which
row must be the same then, whatever became of the machine: rows are split by key into a number of
tasks that is kept with the checkpoint, or are left where the plan's own state has put them. What a
task does is in ``oncetask``.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it

from penstock.backbone.positions import PositionReader, position_group
from penstock.backbone.transactions import TransactionalProducer
from penstock.errors import PenstockError
from penstock.pipelines.oncetask import (
    SECONDS,
    TRANSACTION_TIMEOUT,
    BatchTask,
    Output,
    run_name,
    task_name,
)
from penstock.pipelines.session import shuffle_partitions

__all__ = ["OnceSink", "SinkTime", "end_run", "query_name"]

_NUMBER = "_penstock_number"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_QUERY_ID = "sql.streaming.queryId"
_RELEASE_LIMIT = timedelta(seconds=5)
"""How long a stop may spend on the transactions that it left open."""


@dataclass(slots=True)
class SinkTime:
    """How long the tasks of a query have been writing, all together."""

    seconds: float = 0.0


class OnceSink:
    """Writes batch after batch; to be given to ``foreachBatch``.

    ``tasks`` is into how many the rows are split, by key and in the order of the plan. None leaves
    them where they are, which is right only if the last thing in the plan that moves rows is its
    state. ``guard`` is called once this run has taken over, and raises where it should not have.
    ``time`` is kept up to date.
    """

    task = BatchTask

    def __init__(
        self,
        output: Output,
        *,
        tasks: int | None,
        guard: Callable[[], None] = lambda: None,
        time: SinkTime | None = None,
    ) -> None:
        self._output = output
        self._tasks = tasks
        self._guard = guard
        self._time = time or SinkTime()
        self._run = 0

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write one batch; what a task raises ends the query."""
        if not self._run:
            query = rows.sparkSession.sparkContext.getLocalProperty(_QUERY_ID) or ""
            # A checkpoint that was deleted and made again counts its batches from 0 again.
            self._output = replace(self._output, name=query_name(self._output.name, query))
            self._run = _begin_run(self._output)
            self._guard()
        task = self.task(self._output, batch, self._run)
        tasks = self._tasks or shuffle_partitions(rows.sparkSession)
        try:
            with _fixed_plan(rows.sparkSession):
                told = self._split(rows).mapInArrow(task, f"{SECONDS} double").collect()
            self._time.seconds += sum(row[SECONDS] for row in told)
        except BaseException:
            self._release(tasks)
            raise

    def _split(self, rows: DataFrame) -> DataFrame:
        if self._tasks is None:
            return rows
        key = F.coalesce("key", "value")
        numbered = rows.withColumn(_NUMBER, F.monotonically_increasing_id())
        return numbered.repartition(self._tasks, key).sortWithinPartitions(_NUMBER).drop(_NUMBER)

    def _release(self, tasks: int) -> None:
        """End the transactions that tasks were stopped in, which readers would wait for.

        The run ends first, so that a task that Spark has given up, and that is still there, begins
        nothing more. Where this fails they end with the next start, or when their time is over.
        """
        output = replace(self._output, connection=self._output.connection.within(_RELEASE_LIMIT))
        with suppress(PenstockError):
            end_run(output, tasks=tasks, after=self._run)


def query_name(name: str, query: str) -> str:
    """Return the name of a query with this id, under which its positions are kept."""
    return f"{name}.{query}"


def end_run(output: Output, *, tasks: int, after: int | None = None) -> None:
    """End the run of a query: nothing of it is under way then, and its tasks write no more.

    Nothing happens if the last run is not this one; without ``after`` whichever it is ends.
    """
    if _begin_run(output, after=after):
        for number in range(tasks):
            name = task_name(output.name, number)
            TransactionalProducer(output.connection, name, timeout=TRANSACTION_TIMEOUT).close()


def _begin_run(output: Output, *, after: int | None = None) -> int:
    """Return the number of a new run; tasks of earlier ones take nothing over any more.

    0, and nothing is begun, if the run before is not the one that it is to come ``after``.
    """
    name = run_name(output.name)
    with (
        TransactionalProducer(output.connection, name) as producer,
        closing(PositionReader(output.connection, name)) as reader,
    ):
        before = max(0, reader.read(output.at))
        if after not in (None, before):
            return 0
        producer.begin()
        producer.commit({output.at: before + 1}, group=position_group(name))
    return before + 1


@contextmanager
def _fixed_plan(spark: SparkSession) -> Iterator[None]:
    """Keep Spark from choosing the number of tasks by what it sees."""
    before = spark.conf.get(_ADAPTIVE)
    spark.conf.set(_ADAPTIVE, "false")
    try:
        yield
    finally:
        spark.conf.set(_ADAPTIVE, str(before))
