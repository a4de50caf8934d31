"""SQL over streams, tables and the lake, as a batch: read only, bounded in rows and in time.

A query has a Spark session of its own, in which nothing exists but the views it reads: no files by
their path, no variables, none of the functions that call into Java. It belongs to no consumer
group and writes nothing, so that whatever runs is not disturbed.
"""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sql

from penstock.backbone.connection import Connection
from penstock.backbone.logrange import EARLIEST, LATEST, End, Start
from penstock.backbone.topics import Topics
from penstock.core.graph import Graph, Lake, OnLog, Table
from penstock.errors import ConfigurationError, PenstockError, TransientError
from penstock.machine.configfile import Loaded
from penstock.pipelines.batch import settled_range
from penstock.pipelines.failures import first_lines
from penstock.pipelines.laketable import defaulted, empty_rows, lake_path, table_exists
from penstock.pipelines.reading import REJECTED, latest_records, records, topic_rows
from penstock.pipelines.session import session, session_beside
from penstock.pipelines.sqlgate import AllowedQuery, Relation

__all__ = ["Answer", "QuerySpan", "ask"]

_SETTINGS = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.session.timeZone": "UTC",
}
_CALLS_INTO_JAVA = ("java_method", "reflect", "try_reflect")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySpan:
    """What a query may see and take: a range of topics, rows that are given, time."""

    start: Start = EARLIEST
    end: End = LATEST
    rows: int
    time: timedelta


class Answer:
    """The rows of a query, once; afterwards what it did not show."""

    def __init__(self, frame: DataFrame, limit: int, observed: dict[str, str]) -> None:
        self.columns = frame.columns
        self.truncated = False
        """Whether there are more rows than were asked for."""
        self._limit = limit
        self._observed = observed
        self._frame = frame.limit(limit + 1)
        self._read = [_reader(field.dataType) for field in frame.schema]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, a partition in memory at a time."""
        for number, row in enumerate(self._frame.toLocalIterator()):
            if number == self._limit:
                self.truncated = True
                return
            yield tuple(read(value) for read, value in zip(self._read, row, strict=True))

    def refused(self) -> dict[str, int]:
        """Return how many records of each stream, of those that were read, are dead letters."""
        found: dict[str, int] = {}
        counted: Any = self._frame._jdf.queryExecution().observedMetrics()  # noqa: SLF001
        for view, name in self._observed.items():
            row = counted.get(view)
            if row.isDefined() and (count := int(row.get().getAs(REJECTED))):
                found[name] = count
        return found


@contextmanager
def ask(
    graph: Graph,
    query: AllowedQuery,
    site: Loaded,
    connection: Connection | None,
    *,
    span: QuerySpan,
) -> Iterator[Answer]:
    """Give the answer to a query; Spark ends with the block.

    The range of each topic is settled at the beginning, and ends where what is committed does.
    Without a connection only the lake can be read. Raises ConfigurationError ``query.wrong`` where
    Spark does not understand or cannot compute it, TransientError ``query.time`` when its time is
    over.
    """
    with session(site.settings, site.places, name=f"{graph.app}.query") as whole:
        spark = _closed_session(whole)
        with _limited(spark, span.time), _explained():
            observed = {}
            for relation in query.reads:
                data = graph.find(relation.name)
                if data is None:
                    raise KeyError(relation.name)
                if isinstance(data, Lake):
                    frame = _lake_frame(spark, data, relation, lake_path(data.name, site))
                elif connection is not None:
                    observed[relation.view] = data.name
                    frame = _log_frame(spark, data, connection, span, observed=relation.view)
                else:
                    raise ValueError(f"{data.name} is on the log")
                frame.createOrReplaceTempView(relation.view)
            yield Answer(spark.sql(query.sql), span.rows, observed)


def _closed_session(spark: SparkSession) -> SparkSession:
    """Return a session with views and settings of its own, that cannot reach out of the query."""
    found = session_beside(spark, _SETTINGS)
    java: Any = found.sparkContext._jvm  # noqa: SLF001
    registry: Any = found._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    some = java.scala.Option.apply
    for name in _CALLS_INTO_JAVA:
        identifier = java.org.apache.spark.sql.catalyst.FunctionIdentifier
        registry.dropFunction(identifier(name, some("builtin"), some("system")))
    return found


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
    spark: SparkSession, data: OnLog, connection: Connection, span: QuerySpan, *, observed: str
) -> DataFrame:
    over = settled_range(Topics(connection), data.topic.name, span.start, span.end)
    rows = topic_rows(spark, connection, data.topic.name, over=over)
    if isinstance(data, Table):
        return latest_records(rows, data, observed=observed)
    return records(rows, data, observed=observed)


@contextmanager
def _limited(spark: SparkSession, limit: timedelta) -> Iterator[None]:
    """Cancel the jobs of the block when its time is over."""
    context, group, over = spark.sparkContext, f"query-{uuid.uuid4()}", threading.Event()

    def cancel() -> None:
        over.set()
        context.cancelJobGroup(group)

    timer = threading.Timer(limit.total_seconds(), cancel)
    timer.daemon = True
    context.setJobGroup(group, "penstock query", interruptOnCancel=True)
    timer.start()
    try:
        yield
    except (PySparkException, Py4JError, PenstockError) as error:
        if not over.is_set():
            raise
        raise TransientError(
            f"the query took longer than {limit.total_seconds():g} s and was ended",
            code="query.time",
            hint="ask for less (--from, --to), or give it longer: --time-limit 1h",
        ) from error
    finally:
        timer.cancel()
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@contextmanager
def _explained() -> Iterator[None]:
    """Say what Spark has against a query in a line, without plans and traces."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise ConfigurationError(
            "Spark cannot answer the query",
            code="query.wrong",
            detail=first_lines(str(error)),
            hint='its columns: penstock query APP "select * from TABLE limit 1"',
        ) from error


def _reader(kind: sql.DataType) -> Callable[[Any], Any]:
    """Return what makes plain values of a column's: instants in UTC, records as dictionaries."""
    match kind:
        case sql.TimestampType():
            # PySpark gives the time on the wall of this machine, fold included.
            return lambda value: None if value is None else _utc(value)
        case sql.ArrayType():
            item = _reader(kind.elementType)
            return lambda value: None if value is None else [item(each) for each in value]
        case sql.MapType():
            inner = _reader(kind.valueType)
            return lambda value: (
                None if value is None else {str(key): inner(each) for key, each in value.items()}
            )
        case sql.StructType():
            readers = [(field.name, _reader(field.dataType)) for field in kind]
            return lambda value: (
                None if value is None else {name: read(value[name]) for name, read in readers}
            )
    return _plain


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
