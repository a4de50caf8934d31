"""Streams, tables and lake tables, as values.

Long because each method that begins a computation shows how it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from penstock.core.derived.deduplication import Deduplicated
from penstock.core.derived.repartition import Repartitioned
from penstock.core.joins.declared import How, On, Span
from penstock.core.joins.join import Join, joined
from penstock.core.operators.broadcast import Broadcast
from penstock.core.panes.windows import WindowKind
from penstock.core.records.days import Day
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import RecordType
from penstock.core.records.rowkey import row_of
from penstock.core.rollup.aggregation import Selection, Windowed
from penstock.core.tables.grouping import Empty, Grouped, grouped
from penstock.core.topic import TopicSpec
from penstock.errors import Place

__all__ = [
    "LAKE_HISTORY",
    "MOST_ROUNDS",
    "Archive",
    "Data",
    "Feedback",
    "Lake",
    "OnLog",
    "Output",
    "Stream",
    "Table",
    "delete",
    "feedback",
    "send",
]

T = TypeVar("T")

LAKE_HISTORY = timedelta(days=7)
MOST_ROUNDS = 10_000
"""How often a record may go round, where a feedback edge does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(Generic[T]):
    """Records of one type on one topic, in order per key; ``app.stream`` declares it.

    Examples:
        >>> result = readings.window(fixed("1m"), by="device").aggregate(readings=count())
        >>> counts = app.table("counts", result)
    """

    name: str
    record: RecordType[T]
    topic: TopicSpec
    event_time: EventTime = field(default_factory=EventTime)
    """How the watermark follows its records."""
    archive: Archive[T] | None = None
    """The archive that is read before the log; None: only the log is read."""
    sources: tuple[str, ...] = ()
    """Whose event times its records carry, where an operator has repartitioned them: the partitions
    that they came from. Empty: those of its own partitions."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["stream"] = field(default="stream", init=False)

    @property
    def live(self) -> Stream[T]:
        """The stream as it is declared, without its history."""
        return self if self.archive is None else replace(self, archive=None)

    def where(self, condition: str) -> Selection:
        """Keep the records for which the expression is true; false and null are left out."""
        return Selection(self).where(condition)

    def select(self, /, **fields: str) -> Selection:
        """Compute new fields from the old ones; the event time stays the record's."""
        return Selection(self).select(**fields)

    def flatten(self, field: str) -> Selection:
        """Make a record for each item of a list; the item takes the list's place.

        Examples:
            >>> @record(key="order")
            ... class Order:
            ...     order: str
            ...     items: list[str]
            >>> orders = app.stream("orders", Order)
            >>> items = orders.flatten("items").select(order="order", item="items")
            >>> each = app.stream("each", items, on="services")
        """
        return Selection(self).flatten(field)

    def branch(self, *conditions: str) -> tuple[Selection, ...]:
        """Split the records: each goes to the first condition that is true, else to the last.

        Examples:
            >>> warm, cold, rest = readings.branch("celsius > 30", "celsius < 10")
            >>> freezing = app.stream("freezing", cold, on="services")
        """
        return Selection(self).branch(*conditions)

    def repartition(self, *, by: str | tuple[str, ...]) -> Repartitioned:
        """Give the records another key: they go to the partition of these fields.

        It is done through a topic, exactly once.

        Examples:
            >>> @record(key="order")
            ... class Sale:
            ...     order: str
            ...     customer: str
            >>> sales = app.stream("sales", Sale)
            >>> by_customer = app.stream(
            ...     "by_customer", sales.repartition(by="customer"), on="services"
            ... )
            >>> by_customer.record.schema.key
            ('customer',)
        """
        return Selection(self).repartition(by=by)

    def deduplicate(
        self, *, by: str | tuple[str, ...] | Mapping[str, str], within: str
    ) -> Deduplicated:
        """Leave out records that came before, within a span of event time.

        Two are the same where their keys are, and the values of ``by``: fields, or a dict from
        names to expressions. What was passed on is remembered until event time is twice the span
        past it. A record further behind than the span is late.

        Examples:
            >>> once = readings.deduplicate(by="at", within="1h")
            >>> each_once = app.stream("each_once", once, on="services")
        """
        return Selection(self).deduplicate(by=by, within=within)

    def join(
        self,
        other: Stream[Any] | Table[Any] | Selection | Broadcast,
        *,
        on: On,
        how: How = "inner",
        within: Span | None = None,
        before: Span | None = None,
        after: Span | None = None,
        lateness: Span = "0s",
        wait: Span | None = None,
        repartition: bool = False,
        names: tuple[str, str] | None = None,
    ) -> Join:
        """Join its records with those of another stream, or with the rows of a table.

        Two streams are joined within a time: partners are records of the other stream from
        ``before`` a record of this one to ``after`` it; ``within`` is both. A table row is looked
        up for each record; where the table has a ``history``, the row that held at the record's
        event time.

        Args:
            other: A stream, a selection of one, a table, or ``broadcast(table)``.
            on: The field that is equal on both sides, several of them, or a dict from the fields
                of this side to those of the other.
            how: ``"inner"``, ``"left"``, or, of two streams, ``"outer"``.
            within: How far apart records may be, either way.
            before: How much earlier the other one may be; a span that is negative: at least so
                much later.
            after: How much later the other one may be.
            lateness: How far event time may be past the end of a record's window before the record
                is late. Late ones go to the late ledger.
            wait: How far event time must be past a record before it looks the table up.
            repartition: Whether records that are not keyed so go through a topic that is.
            names: What the sides are called in the results; else as the streams are.

        Examples:
            >>> others = app.stream("others", Reading)
            >>> near = readings.join(others, on="device", within="10s").select(
            ...     device="device", difference="readings.celsius - others.celsius"
            ... )
            >>> differences = app.stream("differences", near, on="services")
        """
        return Selection(self).join(
            other,
            on=on,
            how=how,
            within=within,
            before=before,
            after=after,
            lateness=lateness,
            wait=wait,
            repartition=repartition,
            names=names,
        )

    def window(
        self,
        windows: WindowKind,
        *,
        by: str | tuple[str, ...] | Mapping[str, str] = (),
        lateness: str = "0s",
        time: Literal["event", "processing"] = "event",
    ) -> Windowed:
        """Put the records into windows, for each value of the ``by`` fields on its own."""
        return Selection(self).window(windows, by=by, lateness=lateness, time=time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[T]):
    """The latest record per key, on a compacted topic; a null value deletes its key."""

    name: str
    record: RecordType[T]
    topic: TopicSpec
    history: timedelta | None = None
    """For how long a join finds the row that held at an earlier time; None: only as it is now."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["table"] = field(default="table", init=False)

    @property
    def archive(self) -> None:
        """None: only a stream can be read after its history."""

    def join(
        self,
        other: Table[Any],
        *,
        on: On,
        how: How = "inner",
        names: tuple[str, str] | None = None,
    ) -> Join:
        """Join its rows with those of another table.

        Where ``on`` is the key of both, a result has that key. Where it is another field of this
        table that holds the key of the other one, a result has the key of this table, and a row of
        the other one may be in many results. A change on either side changes the results; a row
        that is gone deletes them.

        Args:
            other: The other table.
            on: The field, several of them, or a dict from the fields of this table to the key of
                the other.
            how: ``"inner"``, ``"left"``, or, by the key of both, ``"outer"``.
            names: What the sides are called in the results; else as the tables are.

        Examples:
            >>> latest, hottest = app.table("latest", Reading), app.table("hottest", Reading)
            >>> both = latest.join(hottest, on="device", how="left").select(
            ...     device="device", now="latest.celsius", ever="hottest.celsius"
            ... )
            >>> compared = app.table("compared", both, on="services")
        """
        return joined(self, other, on=on, how=how, names=names)

    def where(self, condition: str) -> Selection:
        """Keep the rows for which the expression is true; false and null are left out.

        A row that does not pass, or no more, is deleted from the result.

        Examples:
            >>> latest = app.table("latest", Reading)
            >>> warm = app.table("warm", latest.where("celsius > 20"), on="services")
        """
        return self._selection.where(condition)

    def group(
        self, *, by: str | tuple[str, ...] | Mapping[str, str], empty: Empty = "delete"
    ) -> Grouped:
        """Put the rows into groups; a row that changes moves from its old group to its new one.

        Rows with a null among the values of ``by`` are in no group.

        Args:
            by: Fields, or a dict from names to expressions.
            empty: What becomes of a group that has lost its last row: ``"delete"`` deletes its
                result, ``"keep"`` keeps it, with the results of no rows.

        Examples:
            >>> latest = app.table("latest", Reading)
            >>> days = latest.group(by={"day": "date(at)"}).aggregate(devices=count())
            >>> app.table("days", days, on="services").record.schema.key
            ('day',)
        """
        return grouped(self._selection.selected, by, empty)

    @property
    def _selection(self) -> Selection:
        rows: Any = self
        return Selection(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake(Generic[T]):
    """All records of one type in a Delta table of the lake."""

    name: str
    record: RecordType[T]
    partition_by: tuple[str | Day, ...] = ()
    retention: timedelta | None = None
    """How long after their event time records are kept; None: for ever."""
    history: timedelta = LAKE_HISTORY
    """How long the table can be read as it was."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["lake"] = field(default="lake", init=False)

    @property
    def archive(self) -> None:
        """None: only a stream can be read after its history."""

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that the table is partitioned by."""
        return tuple(part.column if isinstance(part, Day) else part for part in self.partition_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive(Lake[T]):
    """All records of a stream in the lake, each with its coordinates on the log."""

    stream: Stream[T]

    @property
    def filling(self) -> str:
        """The name of the pipeline that fills it."""
        return f"{self.name}.filling"

    @property
    def then_live(self) -> Stream[T]:
        """The stream with its history: first the archive, then the log, each record once.

        Pipelines, and windowed aggregations on Spark, can read it instead of the stream.
        """
        return replace(self.stream, archive=self)


OnLog: TypeAlias = Stream[Any] | Table[Any]
Data: TypeAlias = Stream[Any] | Table[Any] | Lake[Any]


@dataclass(frozen=True, slots=True)
class Feedback:
    """An edge that closes a cycle on purpose: ``writes=feedback(stream)``."""

    data: OnLog
    most: Any = MOST_ROUNDS
    """How often a record may go round."""


@dataclass(frozen=True, slots=True)
class Output(Generic[T]):
    """An output of a service that is addressed to one stream, or the deletion of a row.

    ``send`` and ``delete`` make it; annotate the result of the service with it.

    Examples:
        >>> send(alarms, Alarm("boiler", "hot")).record
        Alarm(device='boiler', text='hot')
    """

    to: Stream[T] | Table[T]
    record: T | None
    """None: delete a row."""
    headers: Mapping[str, bytes] = field(default_factory=dict)
    row: Any = None
    """The key of the row to delete."""


def feedback(data: OnLog, *, most: int = MOST_ROUNDS) -> Feedback:
    """Declare that a service writes back into a stream that it reads, directly or through others.

    Without it, ``penstock check`` refuses a cycle, because records may go round in it for ever.
    The service has to end the cycle. The header ``penstock.rounds`` says how often a record, or
    those that it was made from, went round; one that did so more often than ``most`` becomes a
    dead letter. What a timer gives begins to count anew.

    Examples:
        >>> again = app.stream("again", Reading)
        >>> @app.service(reads=again, writes=feedback(again))
        ... def cool_down(reading: Reading) -> Reading | None:
        ...     if reading.celsius > 20:
        ...         return Reading(reading.device, reading.at, reading.celsius - 1)
    """
    return Feedback(data, most)


def send(
    to: Stream[T] | Table[T], record: T, *, headers: Mapping[str, bytes] | None = None
) -> Output[T]:
    """Address an output of a service to one stream, and give it headers.

    A service that writes several streams of one record type needs it. Annotate the result as
    ``Output[...]``. It raises nothing; a stream that is not among ``writes`` is an error of the
    record in the step ``produce``.

    Examples:
        >>> @app.service(reads=readings, writes=alarms)
        ... def warn_with_header(reading: Reading) -> Output[Alarm]:
        ...     return send(alarms, Alarm(reading.device, "hot"), headers={"why": b"heat"})
    """
    return Output(to, record, headers or {})


def delete(table: Table[T], key: Any, *, headers: Mapping[str, bytes] | None = None) -> Output[T]:
    """Delete the row of a key from a table that the service writes.

    ``key`` is the value of the key field, or a tuple of values if the type has several. A deletion
    is an output: it keeps its place among the others and is committed with them. Where there is no
    such row, nothing changes. It raises a TypeError for a stream, whose records stay, and for a
    key that is not of the field's type.

    Examples:
        >>> @app.service(reads=readings, writes=hot)
        ... def hold(reading: Reading) -> Alarm | Output[Alarm]:
        ...     if reading.celsius > 60:
        ...         return Alarm(reading.device, "hot")
        ...     return delete(hot, reading.device)
    """
    given: Any = table
    if not isinstance(given, Table):
        name = getattr(given, "name", given)
        raise TypeError(f"{name!r} is not a table: only rows of tables can be deleted")
    return Output(table, None, headers or {}, row_of(table.record.schema, key))
