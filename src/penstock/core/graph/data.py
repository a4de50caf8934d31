"""Streams, tables and lake tables, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from penstock.core.panes.windows import WindowKind
from penstock.core.records.days import Day
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import RecordType
from penstock.core.rollup.aggregation import Selection, Windowed
from penstock.core.topic import TopicSpec
from penstock.errors import Place

__all__ = [
    "LAKE_HISTORY",
    "Archive",
    "Data",
    "Feedback",
    "Lake",
    "OnLog",
    "Output",
    "Stream",
    "Table",
]

T = TypeVar("T")

LAKE_HISTORY = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(Generic[T]):
    """Records of one type on one topic, in order per key."""

    name: str
    record: RecordType[T]
    topic: TopicSpec
    event_time: EventTime = field(default_factory=EventTime)
    """How the watermark follows its records."""
    archive: Archive[T] | None = None
    """The archive that is read before the log; None: only the log is read."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["stream"] = field(default="stream", init=False)

    @property
    def live(self) -> Stream[T]:
        """The stream as it is declared, without its history."""
        return self if self.archive is None else replace(self, archive=None)

    def where(self, condition: str) -> Selection:
        """Keep the records for which the expression is true; false and null are left out."""
        return Selection(self).where(condition)

    def select(self, **fields: str) -> Selection:
        """Compute new fields from the old ones; the event time stays the record's."""
        return Selection(self).select(**fields)

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
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["table"] = field(default="table", init=False)


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


@dataclass(frozen=True, slots=True)
class Output(Generic[T]):
    """A record, the stream it goes to and its headers; or the deletion of a row.

    :func:`penstock.send` and :func:`penstock.delete` create it.
    """

    to: Stream[T] | Table[T]
    record: T | None
    """None: delete a row."""
    headers: Mapping[str, bytes] = field(default_factory=dict)
    row: Any = None
    """The key of the row to delete."""
