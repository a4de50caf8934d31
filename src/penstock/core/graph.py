"""The application as a value: what it declares, and how records flow between its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from penstock.core.days import Day
from penstock.core.deadletter import dead_letter_topic
from penstock.core.panes.windows import WindowKind
from penstock.core.policy import ErrorPolicy
from penstock.core.record import RecordType
from penstock.core.rollup.aggregation import Aggregation, Selection, Windowed
from penstock.core.rollup.late import late_topic
from penstock.core.state import StateSpec
from penstock.core.topic import TopicSpec
from penstock.errors import DefinitionError, Place, Problem

__all__ = [
    "DEFAULT_CONCURRENCY",
    "DEFAULT_TIMEOUT",
    "Archive",
    "Connector",
    "Data",
    "Delivery",
    "Edge",
    "Feedback",
    "Follows",
    "Graph",
    "Lake",
    "MicroBatch",
    "OnLog",
    "Output",
    "Part",
    "Pipeline",
    "RealTime",
    "Service",
    "Source",
    "Stream",
    "Table",
]

T = TypeVar("T")

DEFAULT_CONCURRENCY = 64
DEFAULT_TIMEOUT = timedelta(seconds=30)

Delivery = Literal["at_most_once", "at_least_once", "exactly_once"]
Follows = Literal["slowest", "newest"]
IDLE_AFTER = timedelta(minutes=1)
LAKE_HISTORY = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(Generic[T]):
    """Records of one type on one topic, in order per key."""

    name: str
    record: RecordType[T]
    topic: TopicSpec
    disorder: timedelta | None = None
    """How far behind the newest event time a record may come and still be on time."""
    idle_after: timedelta | None = IDLE_AFTER
    """How long a partition is silent before it holds the watermark of the others no more."""
    closes_after: timedelta | None = None
    """How long all are silent before the watermark goes on with the clock; None: it stays."""
    ahead: timedelta | None = None
    """How far ahead of the clock an event time is believed; None: any."""
    follows: Follows = "slowest"
    """Which partition the watermark follows."""
    archive: Archive[T] | None = None
    """Where its history is read before the log; None: the log alone is read."""
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
    """All records of a stream in the lake, each with the place it had on the log."""

    stream: Stream[T]

    @property
    def filling(self) -> str:
        """The name of the pipeline that fills it."""
        return f"{self.name}.filling"

    @property
    def then_live(self) -> Stream[T]:
        """The stream with its history: what is archived, then the log, each record once.

        It is read in place of the stream by pipelines and windowed aggregations on Spark.
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
    """One record addressed to one stream, with headers, from a service; or a row's deletion."""

    to: Stream[T] | Table[T]
    record: T | None
    """None: a row is deleted."""
    headers: Mapping[str, bytes] = field(default_factory=dict)
    row: Any = None
    """What has the key of the row that is deleted; :func:`penstock.delete` makes it."""


class Connector(Protocol):
    """A way in from outside; ``penstock.connectors`` has them."""

    @property
    def interactive(self) -> bool:
        """Whether it needs a person at a terminal; `penstock dev` leaves it to them."""

    def describe(self) -> str:
        """Return what it reads, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Brings records of an outside system onto a stream."""

    name: str
    connector: Connector
    into: OnLog
    parse: Callable[[str], Any] | None = field(default=None, compare=False)
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["source"] = field(default="source", init=False)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Spark takes what has come since the last batch, at most this often."""

    every: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class RealTime:
    """Spark handles records as they come (milliseconds, at least once, stateless only)."""

    checkpoint_every: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A function from DataFrames to a DataFrame, run by Spark as a stream or over a range."""

    name: str
    function: Callable[..., Any] = field(compare=False)
    reads: tuple[Data, ...]
    writes: Data
    trigger: MicroBatch | RealTime = MicroBatch()
    output: Literal["append", "update", "complete"] = "append"
    aggregation: Aggregation | None = None
    """What it computes, where that was declared as a windowed aggregation."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["pipeline"] = field(default="pipeline", init=False)

    @property
    def delivery(self) -> Delivery:
        """Return what a reader of committed records may rely on."""
        return "at_least_once" if isinstance(self.trigger, RealTime) else "exactly_once"

    @property
    def lookups(self) -> tuple[Table[Any] | Lake[Any], ...]:
        """Return what is looked up as it is at each batch.

        Tables beside a stream, and lake tables beside a stream or a table; alone they are streams.
        """
        kinds = {data.kind for data in self.reads}
        flows = "stream" if "stream" in kinds else "table" if "table" in kinds else "lake"
        return tuple(
            data for data in self.reads if not isinstance(data, Stream) and data.kind != flows
        )

    @property
    def followed(self) -> tuple[OnLog, ...]:
        """Return the streams and tables whose topics it follows, record by record."""
        lookups = self.lookups
        return tuple(
            data for data in self.reads if not isinstance(data, Lake) and data not in lookups
        )

    def __call__(self, *frames: Any) -> Any:
        """Call the user's function itself, as its own tests do."""
        return self.function(*frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A function, or a class or object with ``process``, that handles one record at a time."""

    name: str
    function: Any = field(compare=False)
    reads: tuple[OnLog, ...]
    writes: tuple[OnLog, ...]
    feedback: tuple[str, ...] = ()
    """Names of what it writes that close a cycle on purpose."""
    delivery: Delivery = "exactly_once"
    errors: ErrorPolicy = field(default_factory=ErrorPolicy)
    concurrency: int = DEFAULT_CONCURRENCY
    """How many calls of an async service may be under way at a time."""
    timeout: timedelta = DEFAULT_TIMEOUT
    """How long one call of an async service may take."""
    states: tuple[StateSpec, ...] = ()
    context: str | None = None
    """The name of the parameter that takes the Context, if there is one."""
    timed: bool = False
    """Whether it has timers."""
    aggregation: Aggregation | None = None
    """What it computes, where that was declared as a windowed aggregation."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["service"] = field(default="service", init=False)

    @property
    def keeps_state(self) -> bool:
        """Whether it remembers anything per key, so that it needs keys and a changelog."""
        return self.timed or bool(self.states) or self.aggregation is not None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the user's function itself, or make an object of their class, as tests do."""
        call = self.function if callable(self.function) else self.function.process
        return call(*arguments, **named)


Part: TypeAlias = Source | Pipeline | Service


@dataclass(frozen=True, slots=True)
class Edge:
    """Records flow from one node to the other, both by name."""

    start: str
    end: str
    feedback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Everything an application declares. Equal graphs run the same application."""

    app: str
    data: tuple[Data, ...]
    parts: tuple[Part, ...]
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)

    def part(self, name: str) -> Part | None:
        """Return the part of this name, or None."""
        return next((part for part in self.parts if part.name == name), None)

    def find(self, name: str) -> Data | None:
        """Return the stream, table or lake table of this name, or None."""
        return next((data for data in self.data if data.name == name), None)

    @property
    def on_log(self) -> tuple[OnLog, ...]:
        """Return the streams and tables."""
        return tuple(data for data in self.data if not isinstance(data, Lake))

    @property
    def dead_letters(self) -> TopicSpec:
        """Return the topic for records that cannot be used."""
        return dead_letter_topic(self.app)

    @property
    def late_records(self) -> TopicSpec:
        """Return the topic for records that no window took."""
        return late_topic(self.app)

    @property
    def aggregates(self) -> bool:
        """Return whether it declares a windowed aggregation."""
        return any(not isinstance(part, Source) and part.aggregation for part in self.parts)

    def changelog(self, service: Service) -> TopicSpec:
        """Return the topic that a service's state is rebuilt from."""
        return TopicSpec(
            name=f"{self.app}.{service.name}.changelog",
            partitions=service.reads[0].topic.partitions,
            compacted=True,
            retention=None,
        )

    def topics(self) -> tuple[TopicSpec, ...]:
        """Return every topic the application needs, its own included."""
        changelogs = (
            self.changelog(part)
            for part in self.parts
            if isinstance(part, Service) and part.keeps_state and part.reads
        )
        late = (self.late_records,) if self.aggregates else ()
        return (*(data.topic for data in self.on_log), self.dead_letters, *late, *changelogs)

    def edges(self) -> Iterator[Edge]:
        """Yield the flow of records, part by part in order of declaration."""
        for part in self.parts:
            match part:
                case Source():
                    yield Edge(part.name, part.into.name)
                case Pipeline():
                    for data in part.reads:
                        yield Edge(data.name, part.name)
                        if isinstance(data, Stream) and data.archive:
                            yield Edge(data.archive.name, part.name)
                    yield Edge(part.name, part.writes.name)
                case Service():
                    yield from (Edge(data.name, part.name) for data in part.reads)
                    for data in part.writes:
                        yield Edge(part.name, data.name, data.name in part.feedback)

    def verified(self) -> Graph:
        """Return the graph itself, or raise a DefinitionError with every problem found."""
        from penstock.core.check import check

        if problems := check(self):
            raise DefinitionError(tuple(problems))
        return self
