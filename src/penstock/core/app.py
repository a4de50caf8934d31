"""The application: declarations in, a graph out. Declaring starts nothing and raises nothing.

Long because all that can be declared is declared here, each with its options and what they mean.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal, Protocol, TypeVar

from penstock.core.archive import PARTITIONED_BY
from penstock.core.days import Day
from penstock.core.graph import (
    DEFAULT_CONCURRENCY,
    DEFAULT_TIMEOUT,
    IDLE_AFTER,
    LAKE_HISTORY,
    Archive,
    Connector,
    Data,
    Delivery,
    Feedback,
    Follows,
    Graph,
    Lake,
    MicroBatch,
    OnLog,
    Output,
    Part,
    Pipeline,
    RealTime,
    Service,
    Source,
    Stream,
    Table,
)
from penstock.core.place import caller, did_you_mean, place_of
from penstock.core.policy import ErrorPolicy
from penstock.core.record import RecordType, record_type
from penstock.core.rollup.aggregation import Aggregation
from penstock.core.rollup.panerecord import Shape, pane_record_type
from penstock.core.rollup.resolve import Rollup, read_rollup
from penstock.core.schema import Schema
from penstock.core.signature import method, read_definition
from penstock.core.topic import (
    DEFAULT_MAX_RECORD_BYTES,
    DEFAULT_PARTITIONS,
    Partitioning,
    TopicSpec,
)
from penstock.core.units import UnitError, duration, size
from penstock.errors import Place, Problem

__all__ = ["App", "feedback", "micro_batch", "real_time", "send"]

T = TypeVar("T")
V = TypeVar("V")

_WEEK = timedelta(days=7)
_MAX_RECORD = DEFAULT_MAX_RECORD_BYTES


Engine = Literal["spark", "services"]


def _no_function(*_: Any) -> Any:
    raise TypeError("a windowed aggregation is declared, not called")


def _unchanged(records: Any) -> Any:
    return records


def feedback(data: OnLog) -> Feedback:
    """Declare that writing this stream closes a cycle on purpose."""
    return Feedback(data)


def send(
    to: Stream[T] | Table[T], record: T, *, headers: Mapping[str, bytes] | None = None
) -> Output[T]:
    """Address a record to one stream of a service that writes several of one type."""
    return Output(to, record, headers or {})


def micro_batch(*, every: str = "0s") -> MicroBatch:
    """Run a pipeline in micro-batches, at most this often; as fast as they go by default."""
    return MicroBatch(duration(every))


def real_time(*, checkpoint_every: str = "60s") -> RealTime:
    """Run a pipeline in Spark's real-time mode: milliseconds, stateless, at least once."""
    return RealTime(duration(checkpoint_every))


class _OptionReader(Protocol):
    def __call__(
        self, parse: Callable[[Any], V], option: str, given: Any, otherwise: V | None
    ) -> V | None: ...


class App:
    """A name, and what is declared under it. :attr:`graph` is the whole as a value."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._data: list[Data] = []
        self._parts: list[Part] = []
        self._problems: list[Problem] = []
        self._record_types: dict[str, RecordType[Any]] = {}

    def __repr__(self) -> str:
        """Return the name and how much is declared."""
        return f"App({self.name!r}, {len(self._data)} data, {len(self._parts)} parts)"

    @property
    def graph(self) -> Graph:
        """Return everything declared so far, as a frozen value."""
        from_records = [
            problem for found in self._record_types.values() for problem in found.problems
        ]
        return Graph(
            app=self.name,
            data=tuple(self._data),
            parts=tuple(self._parts),
            problems=(*from_records, *self._problems),
        )

    def stream(
        self,
        name: str,
        record: type[T] | Aggregation,
        *,
        on: Engine = "spark",
        partitions: int = DEFAULT_PARTITIONS,
        partition_by: Partitioning | None = None,
        retention: str | timedelta | None = _WEEK,
        retention_size: str | None = None,
        replication: int | None = None,
        max_record: str | int = _MAX_RECORD,
        disorder: str | timedelta | None = None,
        idle_after: str | timedelta | None = IDLE_AFTER,
        closes_after: str | timedelta | None = None,
        ahead: str | timedelta | None = None,
        follows: Follows = "slowest",
    ) -> Stream[T]:
        """Declare a stream: its topic has its name. ``retention=None`` keeps records for ever.

        Records are partitioned by key where their type has one, round robin where not. Instead of a
        record type, a windowed aggregation gives the panes that fill it, ``on`` Spark or services.

        The rest is about event time, and needs one. The watermark stays ``disorder`` behind the
        newest record of the slowest partition (or of all: ``follows="newest"``). A partition silent
        for ``idle_after`` holds it no more; if all are silent for ``closes_after`` it goes on with
        the clock. Records further ``ahead`` of the clock than this are set aside.
        """
        place = caller()
        read = self._option_reader(name, place)
        found = self._record_type(name, record, place)
        topic = TopicSpec(
            name=name,
            partitions=partitions,
            partitioning=partition_by or ("key" if found.schema.key else "round_robin"),
            retention=read(duration, "retention", retention, _WEEK),
            retention_bytes=read(size, "retention_size", retention_size, None),
            replication=replication,
            max_record_bytes=read(size, "max_record", max_record, _MAX_RECORD) or _MAX_RECORD,
        )
        stream = Stream(
            name=name,
            record=found,
            topic=topic,
            disorder=read(duration, "disorder", disorder, None),
            idle_after=read(duration, "idle_after", idle_after, IDLE_AFTER),
            closes_after=read(duration, "closes_after", closes_after, None),
            ahead=read(duration, "ahead", ahead, None),
            follows=follows,
            place=place,
        )
        self._data.append(stream)
        self._fill(stream, record, on, place)
        return stream

    def table(
        self,
        name: str,
        record: type[T] | Aggregation,
        *,
        on: Engine = "spark",
        partitions: int = DEFAULT_PARTITIONS,
        replication: int | None = None,
        max_record: str | int = _MAX_RECORD,
    ) -> Table[T]:
        """Declare a table: the latest record per key, on a compacted topic of its name.

        Instead of a record type, a windowed aggregation gives the latest result of each window,
        computed ``on`` Spark or services.
        """
        place = caller()
        read = self._option_reader(name, place)
        topic = TopicSpec(
            name=name,
            partitions=partitions,
            retention=None,
            compacted=True,
            replication=replication,
            max_record_bytes=read(size, "max_record", max_record, _MAX_RECORD) or _MAX_RECORD,
        )
        found = self._record_type(name, record, place, shape="table")
        table = Table(name=name, record=found, topic=topic, place=place)
        self._data.append(table)
        self._fill(table, record, on, place)
        return table

    def lake(
        self,
        name: str,
        record: type[T],
        *,
        partition_by: str | Day | tuple[str | Day, ...] = (),
        retention: str | timedelta | None = None,
        history: str | timedelta = LAKE_HISTORY,
    ) -> Lake[T]:
        """Declare a Delta table of the lake, perhaps partitioned by some fields or ``day("at")``.

        Days of event time that ended longer ago than ``retention`` are deleted, which needs a
        partition for each; None keeps records for ever. For as long as ``history`` the table can be
        read as it was.
        """
        place = caller()
        read = self._option_reader(name, place)
        span = read(duration, "history", history, LAKE_HISTORY)
        lake = Lake(
            name=name,
            record=self._record_type(name, record, place),
            partition_by=(partition_by,)
            if isinstance(partition_by, str | Day)
            else tuple(partition_by),
            retention=read(duration, "retention", retention, None),
            history=LAKE_HISTORY if span is None else span,
            place=place,
        )
        self._data.append(lake)
        return lake

    def archive(self, stream: Stream[T], *, name: str | None = None) -> Archive[T]:
        """Declare that a stream's records are kept in the lake, each with its place on the log.

        A pipeline ``<name>.filling`` copies them, exactly once and for ever; dead letters stay out.
        The table is called ``<stream>.archive`` unless it is given a name. What reads its
        ``then_live`` gets this history before the log.
        """
        place = caller()
        given: Any = stream
        live = given.live if isinstance(given, Stream) else self._no_stream(given, place)
        archive = Archive(
            name=name or f"{live.name}.archive",
            record=live.record,
            partition_by=PARTITIONED_BY,
            stream=live,
            place=place,
        )
        self._data.append(archive)
        self._parts.append(
            Pipeline(
                name=archive.filling,
                function=_unchanged,
                reads=(live,),
                writes=archive,
                place=place,
            )
        )
        return archive

    def source(
        self,
        name: str,
        connector: Connector,
        *,
        into: Stream[T],
        parse: Callable[[str], T | None] | None = None,
    ) -> Source:
        """Declare that an outside system feeds a stream, line by line.

        ``parse`` makes a record of a line, or None to skip it; without it a line is a record's
        JSON. A line that gives no record is dead-lettered.
        """
        source = Source(name=name, connector=connector, into=into, parse=parse, place=caller())
        self._parts.append(source)
        return source

    def pipeline(
        self,
        *,
        reads: Data | tuple[Data, ...],
        writes: Data,
        name: str | None = None,
        trigger: MicroBatch | RealTime | None = None,
        output: Literal["append", "update", "complete"] | None = None,
    ) -> Callable[[Callable[..., Any]], Pipeline]:
        """Declare a pipeline: a function from one DataFrame per stream read to a DataFrame.

        Beside a stream, tables and lake tables are looked up as they are at each batch. ``output``
        is Spark's output mode; by default a table is updated, anything else appended to. It writes
        exactly once in micro-batches (the default ``trigger``), at least once in real-time mode.
        """

        def decorate(function: Callable[..., Any]) -> Pipeline:
            pipeline = Pipeline(
                name=name or function.__name__,
                function=function,
                reads=self._known(function.__name__, reads, place_of(function)),
                writes=writes,
                trigger=trigger or MicroBatch(),
                output=output or ("update" if isinstance(writes, Table) else "append"),
                place=place_of(function),
            )
            self._parts.append(pipeline)
            return pipeline

        return decorate

    def service(
        self,
        *,
        reads: OnLog | tuple[OnLog, ...],
        writes: OnLog | Feedback | tuple[OnLog | Feedback, ...] = (),
        name: str | None = None,
        delivery: Delivery = "exactly_once",
        errors: ErrorPolicy | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        timeout: str | timedelta = DEFAULT_TIMEOUT,
    ) -> Callable[[Any], Service]:
        """Declare a service: a function of one record that returns or yields what it writes.

        Parameters annotated ``State[...]`` are its states, one annotated ``Context`` tells where
        the record stands. An output goes to the stream of its type; :func:`send` addresses it.

        It may also be a class, or an object of one, with ``process`` and perhaps ``open``,
        ``on_timer`` and ``close``; each partition has an object of its own. ``errors`` says what
        happens to records that fail; they become dead letters by default.

        Where it is async, up to ``concurrency`` calls are under way at a time, records of one key
        one after the other, each for at most ``timeout``.
        """

        def decorate(function: Any) -> Service:
            place = place_of(method(function)) or caller()
            called = name or str(getattr(function, "__name__", type(function).__name__))
            outputs = writes if isinstance(writes, tuple) else (writes,)
            plain = tuple(out.data if isinstance(out, Feedback) else out for out in outputs)
            definition = read_definition(function)
            read = self._option_reader(called, place)
            span = read(duration, "timeout", timeout, DEFAULT_TIMEOUT)
            service = Service(
                name=called,
                function=function,
                reads=self._known(called, reads, place),
                writes=self._known(called, plain, place),
                feedback=tuple(out.data.name for out in outputs if isinstance(out, Feedback)),
                delivery=delivery,
                errors=errors or ErrorPolicy(),
                concurrency=concurrency,
                timeout=DEFAULT_TIMEOUT if span is None else span,
                states=definition.states,
                context=definition.process.context,
                timed=definition.on_timer is not None,
                place=place,
            )
            self._parts.append(service)
            return service

        return decorate

    def _known(self, part: str, given: Any, place: Place | None) -> tuple[Any, ...]:
        """Keep what is a declared stream, table or lake; say what is not."""
        kept = []
        for data in given if isinstance(given, tuple) else (given,):
            if isinstance(data, Stream | Table | Lake):
                kept.append(data)
                continue
            hint = did_you_mean(str(data), [declared.name for declared in self._data])
            text = f"{part} names {data!r}, which is no stream or table"
            self._problems.append(Problem("part.not-data", text, hint, place))
        return tuple(kept)

    def _no_stream(self, given: Any, place: Place | None) -> Stream[Any]:
        """Keep as a problem that something is no stream, and return one in its place."""
        name = str(getattr(given, "name", given))
        streams = [data.name for data in self._data if isinstance(data, Stream)]
        text = f"{name!r} is to be archived and is no stream"
        self._problems.append(Problem("archive.of", text, did_you_mean(name, streams), place))
        record: RecordType[Any] = RecordType(object, Schema(name=name, fields=()), place)
        return Stream(name=name, record=record, topic=TopicSpec(name=name), place=place)

    def _fill(
        self, data: OnLog, given: type[T] | Aggregation, on: Engine, place: Place | None
    ) -> None:
        """Add the part that fills a stream or table with the panes of an aggregation."""
        if not isinstance(given, Aggregation):
            return
        name = f"{data.name}.windows"
        reads = self._known(name, given.stream, place)
        part: Part
        if on == "services":
            part = Service(
                name=name,
                function=None,
                reads=reads,
                writes=(data,),
                aggregation=given,
                place=place,
            )
        else:
            part = Pipeline(
                name=name,
                function=_no_function,
                reads=reads,
                writes=data,
                aggregation=given,
                place=place,
            )
        self._parts.append(part)

    def _record_type(
        self,
        name: str,
        cls: type[T] | Aggregation,
        place: Place | None,
        *,
        shape: Shape = "stream",
    ) -> RecordType[T]:
        if isinstance(cls, Aggregation):
            rollup = read_rollup(cls)
            if isinstance(rollup, Rollup):
                return pane_record_type(name, rollup, shape)
            self._problems += rollup
            return RecordType(object, Schema(name=name, fields=()), place)  # type: ignore[arg-type]
        found = record_type(cls)
        if found is None:
            shown = getattr(cls, "__name__", repr(cls))
            text = f"{name}: {shown} is not a record type"
            self._problems.append(
                Problem("data.not-a-record", text, f"put @record(...) above class {shown}", place)
            )
            return RecordType(cls, Schema(name=shown, fields=()), place)
        self._record_types[f"{found.place}{found.name}"] = found
        return found

    def _option_reader(self, name: str, place: Place | None) -> _OptionReader:
        """Return a reader of durations and sizes that keeps what it cannot read as a problem."""

        def read(
            parse: Callable[[Any], V], option: str, given: Any, otherwise: V | None
        ) -> V | None:
            if given is None:
                return None
            try:
                return parse(given)
            except UnitError as error:
                text = f"{name}: {option}: {error}"
                self._problems.append(Problem("data.option", text, "", place))
                return otherwise

        return read
