"""SQL over streams, tables and the lake, as a batch: read only, bounded in rows and in time.

A query has a Spark session of its own, in which nothing exists but the views it reads: no files by
their path, no variables, none of the functions that call into Java. It belongs to no consumer group
and writes nothing, so it disturbs nothing that runs.
"""

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.backbone.client.connection import Connection
from penstock.backbone.topics.range import EARLIEST, LATEST, End, Start
from penstock.backbone.topics.span import settled_range
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import Data, Lake, OnLog, Table
from penstock.core.graph.graph import Graph
from penstock.errors import ConfigurationError, TransientError
from penstock.machine.configfile import Loaded
from penstock.pipelines.gate.reading import REJECTED, latest_records, records, topic_rows
from penstock.pipelines.lake.table import defaulted, empty_rows, lake_path, table_exists
from penstock.pipelines.query.allowance import Allowance, OverdueError, allowance
from penstock.pipelines.query.gate import AllowedQuery, Relation, allowed_query, refuse_reaching
from penstock.pipelines.query.plainvalues import as_read, reader
from penstock.pipelines.spark.failures import first_lines
from penstock.pipelines.spark.session import session, session_beside
from penstock.pipelines.spark.sqltext import name

__all__ = ["Answer", "QuerySpan", "ask", "closed_session", "run_query", "spark_parser"]

_SETTINGS = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.session.timeZone": "UTC",
}
_REACHING_OUT = (
    *("java_method", "reflect", "try_reflect", "input_file_name", "input_file_block_start"),
    *("input_file_block_length", "current_user", "session_user", "user", "version"),
    *("current_catalog", "current_database", "current_schema"),
)
_PATIENCE_SECONDS = 2.0
"""How long a job may take to end when it is cancelled."""
_ROWS_AT_ONCE = 1000

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySpan:
    """What a query may see and take: a range of topics, rows that are given, time."""

    start: Start = EARLIEST
    end: End = LATEST
    rows: int
    time: timedelta


class Answer:
    """The rows of a query, once; afterwards what it did not show."""

    def __init__(self, frame: DataFrame, asking: "_Asking", observed: list[str]) -> None:
        self.columns = frame.columns
        self.truncated = False
        """Whether there are more rows than were asked for."""
        self._asking = asking
        self._observed = observed
        self._frame = as_read(frame).limit(asking.rows + 1)
        self._read = [reader(field.dataType) for field in frame.schema]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, a partition in memory at a time.

        Raises ConfigurationError ``query.value`` at one with a time that Python has no value for.
        """
        found = self._asking.call(self._frame.toLocalIterator)
        left = self._asking.rows
        while some := self._asking.call(lambda: self._some(found)):
            self.truncated |= len(some) > left
            yield from some[: max(left, 0)]
            left -= len(some)

    def _some(self, found: Iterator[Any]) -> list[tuple[Any, ...]]:
        try:
            return [
                tuple(read(value) for read, value in zip(self._read, row, strict=True))
                for row in itertools.islice(found, _ROWS_AT_ONCE)
            ]
        except (ValueError, OverflowError) as error:
            raise ConfigurationError(
                "a row contains a value that cannot be shown",
                code="query.value",
                detail=str(error),
                hint="only years 1 to 9999 can be shown; as a text: select string(COLUMN)",
            ) from error

    def refused(self) -> dict[str, int]:
        """Return how many records of each stream, of those that were read, are dead letters."""
        return self._asking.call(self._refused)

    def _refused(self) -> dict[str, int]:
        found: dict[str, int] = {}
        counted: Any = self._frame._jdf.queryExecution().observedMetrics()  # noqa: SLF001
        for stream in self._observed:
            row = counted.get(stream)
            if row.isDefined() and (count := int(row.get().getAs(REJECTED))):
                found[stream] = count
        return found


@contextmanager
def ask(
    graph: Graph,
    text: str,
    site: Loaded,
    connect: Callable[[], AbstractContextManager[Connection]],
    *,
    span: QuerySpan,
) -> Iterator[Answer]:
    """Give the answer to a query; Spark ends with the block.

    The range of each stream is settled at the beginning, and ends where what is committed does; a
    table is read whole. ``connect`` is called where the query reads the log. Raises
    ConfigurationError: of the gate (see ``allowed_query``), and ``query.wrong`` where Spark cannot
    compute it; TransientError ``query.time`` when its time is over, whatever Spark does then.
    """
    lakes = [data.name for data in graph.data if isinstance(data, Lake)]
    names = [data.name for data in graph.data]
    with (
        session(site.settings, site.places, name=f"{graph.app}.query") as whole,
        ExitStack() as ends,
    ):
        spark = closed_session(whole)
        asking = ends.enter_context(_asking(spark, span))
        query = asking.call(lambda: allowed_query(text, spark_parser(spark), names, lakes=lakes))
        read = {relation.name: _known(graph, relation.name) for relation in query.reads}
        connection = None
        if any(not isinstance(data, Lake) for data in read.values()):
            connection = ends.enter_context(connect())
        views = _Views(spark, site, connection, span)
        yield asking.call(lambda: _answer(query, views, read, asking))


def spark_parser(spark: SparkSession) -> Callable[[str], Any]:
    """Return what gives Spark's unresolved plan of a text, by the settings of a session."""
    java: Any = spark._jsparkSession  # noqa: SLF001 - there is no public way
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001

    def parse(text: str) -> Any:
        # A thread without a session has settings of its own, by which ${...} is substituted.
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(java)
        return java.sessionState().sqlParser().parsePlan(text)

    return parse


def closed_session(spark: SparkSession) -> SparkSession:
    """Return a session with views and settings of its own, that cannot reach out of the query."""
    found = session_beside(spark, _SETTINGS)
    java: Any = found.sparkContext._jvm  # noqa: SLF001
    registry: Any = found._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    some = java.scala.Option.apply
    for function in _REACHING_OUT:
        identifier = java.org.apache.spark.sql.catalyst.FunctionIdentifier
        registry.dropFunction(identifier(function, some("builtin"), some("system")))
    return found


def _known(graph: Graph, name: str) -> Data:
    data = graph.find(name)
    if data is None:
        raise KeyError(name)
    return data


def _answer(
    query: AllowedQuery, views: "_Views", read: dict[str, Data], asking: "_Asking"
) -> Answer:
    for relation in query.reads:
        views.make(relation, read[relation.name])
    return Answer(run_query(views.spark, query), asking, views.observed)


def run_query(spark: SparkSession, query: AllowedQuery) -> DataFrame:
    """Return the frame of an allowed query whose views are there: of the plan that was checked."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - there is no public way
    java = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, query.plan)  # noqa: SLF001
    if query.names_users:
        refuse_reaching(java.queryExecution().analyzed())
    return DataFrame(java, spark)


class _Views:
    """The views of one query, each over a frame that is made once."""

    def __init__(
        self, spark: SparkSession, site: Loaded, connection: Connection | None, span: QuerySpan
    ) -> None:
        self.spark = spark
        self.observed: list[str] = []
        """The streams and tables whose dead letters are counted."""
        self._site = site
        self._connection = connection
        self._span = span
        self._frames: dict[tuple[Any, ...], DataFrame] = {}

    def make(self, relation: Relation, data: Data) -> None:
        """Make the view of a relation."""
        key = (relation.name, relation.version, relation.timestamp)
        if key not in self._frames:
            self._frames[key] = self._frame(relation, data)
        self._frames[key].createOrReplaceTempView(name(relation.view))

    def _frame(self, relation: Relation, data: Data) -> DataFrame:
        if isinstance(data, Lake):
            return _lake_frame(self.spark, data, relation, lake_path(data.name, self._site))
        if self._connection is None:
            raise ValueError(f"{data.name} is on the log")
        self.observed.append(data.name)
        return _log_frame(self.spark, data, self._connection, self._span)


def _lake_frame(spark: SparkSession, data: Lake[Any], relation: Relation, path: str) -> DataFrame:
    if not table_exists(spark, path):
        return empty_rows(spark, data)
    reader: Any = spark.read.format("delta")
    if relation.version is not None:
        reader = reader.option("versionAsOf", relation.version)
    if relation.timestamp is not None:
        reader = reader.option("timestampAsOf", relation.timestamp)
    found: DataFrame = reader.load(path)
    return defaulted(found, data)


def _log_frame(
    spark: SparkSession, data: OnLog, connection: Connection, span: QuerySpan
) -> DataFrame:
    # The records of a table since some time are not the table.
    whole = isinstance(data, Table)
    start, end = (EARLIEST, LATEST) if whole else (span.start, span.end)
    over = settled_range(Topics(connection), data.topic.name, start=start, end=end)
    rows = topic_rows(spark, connection, data.topic.name, over=over)
    if isinstance(data, Table):
        return latest_records(rows, data, observed=data.name)
    return records(rows, data, observed=data.name)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Calls Spark for one query, within its time, and turns its errors into ours."""

    rows: int
    allowance: Allowance

    def call(self, work: Callable[[], T]) -> T:
        """Return what a call returns."""
        try:
            with _explained():
                return self.allowance.call(work)
        except OverdueError as error:
            limit = self.allowance.span.total_seconds()
            raise TransientError(
                f"the query took longer than {limit:g} s and was ended",
                code="query.time",
                hint="ask for less (--from, --to), or allow more time: --time-limit 1h",
            ) from error


@contextmanager
def _asking(spark: SparkSession, span: QuerySpan) -> Iterator[_Asking]:
    """Give the way to call Spark; what is under way at the end of the block is cancelled."""
    context, group = spark.sparkContext, f"query-{uuid.uuid4()}"

    def cancel() -> None:
        with suppress(Py4JError, OSError):  # the JVM may be gone
            context.cancelJobGroup(group)

    with allowance(span.time, patience=_PATIENCE_SECONDS, cancel=cancel) as found:
        asking = _Asking(span.rows, found)
        # A thread's own, so in the thread that makes the jobs.
        asking.call(lambda: context.setJobGroup(group, "penstock query", interruptOnCancel=True))
        yield asking


@contextmanager
def _explained() -> Iterator[None]:
    """Return Spark's reason against a query in one line, without plans and traces."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise ConfigurationError(
            "Spark cannot answer the query",
            code="query.wrong",
            detail=first_lines(str(error)),
            hint='to see its columns: penstock query APP "select * from TABLE limit 1"',
        ) from error
