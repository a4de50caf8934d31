"""The application: declarations in, a graph out. A declaration starts nothing and raises nothing.

Long because everything that can be declared is here, with its options and what they mean.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal, TypeVar, get_args

from penstock.core.arguments import read_calls, read_event_time, read_policy, read_trigger
from penstock.core.graph.data import (
    LAKE_HISTORY,
    Archive,
    Data,
    Feedback,
    Lake,
    OnLog,
    Output,
    Stream,
    Table,
)
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import (
    Connector,
    Delivery,
    MicroBatch,
    Part,
    Pipeline,
    RealTime,
    Service,
    Sink,
    SinkConnector,
    Source,
)
from penstock.core.graph.policy import ErrorPolicy
from penstock.core.graph.signature import method, read_definition
from penstock.core.options import Options, span_of
from penstock.core.place import caller, did_you_mean, place_of
from penstock.core.records.days import Day
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import RecordType, record_type
from penstock.core.records.rowkey import row_of
from penstock.core.records.schema import Schema
from penstock.core.rollup.aggregation import Aggregation
from penstock.core.rollup.panerecord import Shape, pane_record_type
from penstock.core.rollup.resolve import Rollup, read_rollup
from penstock.core.rules.archive import PARTITIONED_BY
from penstock.core.topic import (
    DEFAULT_MAX_RECORD_BYTES,
    DEFAULT_PARTITIONS,
    Partitioning,
    TopicSpec,
)
from penstock.errors import Place, Problem

__all__ = ["App", "delete", "feedback", "micro_batch", "real_time", "send"]

T = TypeVar("T")

_WEEK = timedelta(days=7)
_MAX_RECORD = DEFAULT_MAX_RECORD_BYTES


Engine = Literal["spark", "services"]
OutputMode = Literal["append", "update", "complete"]


def _no_function(*_: Any) -> Any:
    raise TypeError("a windowed aggregation is declared, not called")


def _unchanged(records: Any) -> Any:
    return records


def feedback(data: OnLog) -> Feedback:
    """Allow a cycle: ``writes=feedback(stream)`` says that this edge closes one on purpose.

    `penstock check` refuses every other cycle.
    """
    return Feedback(data)


def send(
    to: Stream[T] | Table[T], record: T, *, headers: Mapping[str, bytes] | None = None
) -> Output[T]:
    """Return or yield this from a service to choose the stream of a record, or to add headers.

    A service that writes several streams of one type must use it. A call whose headers are neither
    bytes nor text, or exceed 64 KiB, fails.
    """
    return Output(to, record, headers or {})


def delete(table: Table[T], key: Any, *, headers: Mapping[str, bytes] | None = None) -> Output[T]:
    """Return or yield this from a service to delete the row of a key from a table.

    ``key`` is the value of the key field, or a tuple if the type has several key fields. The
    deletion keeps its position among the other outputs. Deleting a missing row has no effect.
    Raises TypeError for a stream, because records of a stream cannot be deleted.
    """
    given: Any = table
    if not isinstance(given, Table):
        name = getattr(given, "name", given)
        raise TypeError(f"{name!r} is not a table: only rows of tables can be deleted")
    return Output(table, None, headers or {}, row_of(table.record.schema, key))


def micro_batch(*, every: str | timedelta = "0s") -> MicroBatch:
    """Run a pipeline in micro-batches, at most one per ``every``; by default without a pause."""
    return MicroBatch(span_of(every))


def real_time(*, checkpoint_every: str | timedelta = "60s") -> RealTime:
    """Run a pipeline in Spark's real-time mode, with a latency of milliseconds.

    Such a pipeline has no state, writes at least once, and cannot write the lake.
    """
    return RealTime(span_of(checkpoint_every))


class App:
    """An application: a name, and everything that is declared under it.

    Its methods only record declarations. `penstock check` reports what is wrong with them, all at
    once. :attr:`graph` is the application as a frozen value.
    """

    def __init__(self, name: str) -> None:
        self._problems: list[Problem] = []
        self.name = Options("the application", caller(), self._problems).name(name)
        self._data: list[Data] = []
        self._parts: list[Part] = []
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
        event_time: EventTime | None = None,
    ) -> Stream[T]:
        """Declare a stream: every record of one type, on a topic with the same name.

        Args:
            name: the name of the stream and of its topic
            record: a record type, or a windowed aggregation that fills the stream with its panes
            on: where the aggregation runs: ``"spark"`` or ``"services"``
            partitions: how many partitions the topic has
            partition_by: ``"key"``, the default if the type has a key, or ``"round_robin"``
            retention: how long records are kept, a week by default; None: for ever
            retention_size: how many bytes each partition keeps; None: no limit
            replication: how many replicas; None: the setting ``kafka.replication``
            max_record: the largest record that the stream accepts
            event_time: how the watermark follows the records
        """
        place = caller()
        options = self._options("stream", name, place)
        name = options.name(name)
        found = self._record_type(name, record, place)
        usual = "key" if found.schema.key else "round_robin"
        by = usual if partition_by is None else partition_by
        topic = TopicSpec(
            name=name,
            partitions=options.count("partitions", partitions, DEFAULT_PARTITIONS),
            partitioning=options.word("partition_by", by, get_args(Partitioning), "round_robin"),
            retention=options.maybe_span("retention", retention, _WEEK),
            retention_bytes=options.maybe_size("retention_size", retention_size, _MAX_RECORD),
            replication=options.maybe_count("replication", replication),
            max_record_bytes=options.size("max_record", max_record, _MAX_RECORD),
        )
        stream = Stream(
            name=name,
            record=found,
            topic=topic,
            event_time=read_event_time(event_time, options),
            place=place,
        )
        self._data.append(stream)
        self._fill(stream, record, options.word("on", on, get_args(Engine), "spark"), place)
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
        """Declare a table: the latest record per key, on a compacted topic with the same name.

        Instead of a record type you can give a windowed aggregation. The table then has the latest
        result of each window, computed ``on`` Spark or services. The other options are those of
        :meth:`stream`.
        """
        place = caller()
        options = self._options("table", name, place)
        name = options.name(name)
        topic = TopicSpec(
            name=name,
            partitions=options.count("partitions", partitions, DEFAULT_PARTITIONS),
            retention=None,
            compacted=True,
            replication=options.maybe_count("replication", replication),
            max_record_bytes=options.size("max_record", max_record, _MAX_RECORD),
        )
        found = self._record_type(name, record, place, shape="table")
        table = Table(name=name, record=found, topic=topic, place=place)
        self._data.append(table)
        self._fill(table, record, options.word("on", on, get_args(Engine), "spark"), place)
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
        """Declare a Delta table of the lake.

        Args:
            name: the name of the table
            record: the type of its rows
            partition_by: fields, or ``day("at")`` for the day of an instant
            retention: days of event time that ended longer ago are deleted, which needs
                ``partition_by=day(...)``; None: rows are kept for ever
            history: for how long earlier versions of the table can be read
        """
        place = caller()
        options = self._options("lake table", name, place)
        name = options.name(name)
        lake = Lake(
            name=name,
            record=self._record_type(name, record, place),
            partition_by=tuple(partition_by)
            if isinstance(partition_by, tuple | list)
            else (partition_by,),
            retention=options.maybe_span("retention", retention),
            history=options.span("history", history, LAKE_HISTORY),
            place=place,
        )
        self._data.append(lake)
        return lake

    def archive(self, stream: Stream[T], *, name: str | None = None) -> Archive[T]:
        """Keep all records of a stream in a table of the lake, each with its coordinates.

        The pipeline ``<name>.filling`` copies them, exactly once. Dead letters are not copied.
        The name is ``<stream>.archive`` by default. A pipeline that reads the archive's
        ``then_live`` reads this history first and then the log.
        """
        place = caller()
        given: Any = stream
        live = given.live if isinstance(given, Stream) else self._no_stream(given, place)
        archive = Archive(
            name=self._options("archive", name, place).name(
                f"{live.name}.archive" if name is None else name
            ),
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
        parse: Callable[[Any], T | None] | None = None,
    ) -> Source:
        """Declare a source: it brings lines or records of an outside system onto a stream.

        Args:
            name: the name of the source
            connector: where the items come from; see :mod:`penstock.connectors`
            into: the stream
            parse: makes a record of an item; None as its result skips the item. It receives a
                line as a text, and anything else as the connector gives it. Without ``parse``, a
                line is the JSON of a record, and anything else must be a record

        An item that gives no record becomes a dead letter.
        """
        place = caller()
        options = self._options("source", name, place)
        name = options.name(name)
        given: Any = connector
        if not callable(getattr(given, "describe", None)):
            hint = 'penstock.connectors has them: text_file("lines.txt"), for example'
            options.wrong("connector", f"{given!r} is not a connector", hint)
        self._problems += getattr(given, "problems", ())
        if parse is not None:
            options.function("parse", parse)
        source = Source(name=name, connector=connector, into=into, parse=parse, place=place)
        if self._is_one(name, into, place):
            self._parts.append(source)
        return source

    def sink(self, name: str, connector: SinkConnector, *, reads: Stream[Any]) -> Sink:
        """Declare a sink: it writes the records of a stream to an outside system.

        The connector decides where they go, and what a reader there may rely on. A record that
        does not decode becomes a dead letter.
        """
        place = caller()
        options = self._options("sink", name, place)
        name = options.name(name)
        given: Any = connector
        if not callable(getattr(given, "describe", None)):
            hint = 'penstock.connectors has them: json_files("out"), for example'
            options.wrong("connector", f"{given!r} is not a connector", hint)
        self._problems += getattr(given, "problems", ())
        sink = Sink(name=name, connector=connector, reads=reads, place=place)
        stream: Any = reads
        if isinstance(stream, Stream):
            self._parts.append(sink)
        else:
            shown = getattr(stream, "name", stream)
            text = f"{name} reads {shown!r}, which is not a stream"
            streams = [data.name for data in self._data if isinstance(data, Stream)]
            hint = did_you_mean(shown, streams)
            self._problems.append(Problem("part.not-data", text, hint, place))
        return sink

    def pipeline(
        self,
        *,
        reads: Data | tuple[Data, ...],
        writes: Data,
        name: str | None = None,
        trigger: MicroBatch | RealTime | None = None,
        output: OutputMode | None = None,
    ) -> Callable[[Callable[..., Any]], Pipeline]:
        """Declare a pipeline: a function that takes one DataFrame per input and returns one.

        A table that is read beside a stream is a lookup: each batch sees it as it is then.

        Args:
            reads: the inputs, in the order of the function's parameters
            writes: the output
            name: the name of the pipeline; by default that of the function
            trigger: :func:`micro_batch` (default) or :func:`real_time`, which writes at least once
            output: Spark's output mode; by default ``"update"`` for a table, otherwise ``"append"``
        """

        def decorate(function: Callable[..., Any]) -> Pipeline:
            place = place_of(function) or caller()
            shown = name if isinstance(name, str) else _called(function)
            options = self._options("pipeline", shown, place)
            called = options.name(_called(function) if name is None else name)
            options.function("what it computes", function)
            usual = "update" if isinstance(writes, Table) else "append"
            mode = usual if output is None else output
            pipeline = Pipeline(
                name=called,
                function=function,
                reads=self._known(called, reads, place),
                writes=writes,
                trigger=read_trigger(trigger, options),
                output=options.word("output", mode, get_args(OutputMode), "append"),
                place=place,
            )
            if self._is_one(called, writes, place):
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
        concurrency: int | None = None,
        timeout: str | timedelta | None = None,
    ) -> Callable[[Any], Service]:
        """Declare a service: a function that handles one record and returns or yields its outputs.

        Further parameters with the annotation ``State[...]`` or ``Context`` receive the state of
        the key, or the record's coordinates and headers. An output goes to the stream of its type,
        or to the one that :func:`send` names.

        A service can also be a class, or an object, with the method ``process`` and optionally
        ``open``, ``on_timer`` and ``close``. Each partition then has its own object.

        Args:
            reads: the streams and tables to read
            writes: the streams and tables to write
            name: the name of the service; by default that of the function or class
            delivery: ``"exactly_once"``, ``"at_least_once"`` or ``"at_most_once"``
            errors: what to do with records that fail: :func:`on_error`
            concurrency: only async: how many calls of a partition may run at a time, 64 by default
            timeout: only async: how long one call may take, 30 seconds by default
        """

        def decorate(function: Any) -> Service:
            place = place_of(method(function)) or caller()
            shown = name if isinstance(name, str) else _called(function)
            options = self._options("service", shown, place)
            called = options.name(_called(function) if name is None else name)
            outputs = tuple(writes) if isinstance(writes, tuple | list) else (writes,)
            plain = tuple(out.data if isinstance(out, Feedback) else out for out in outputs)
            round_again = [out.data for out in outputs if isinstance(out, Feedback)]
            definition = read_definition(function)
            calls, longest = read_calls(function, concurrency, timeout, options)
            service = Service(
                name=called,
                function=function,
                reads=self._known(called, reads, place),
                writes=self._known(called, plain, place),
                feedback=tuple(str(getattr(data, "name", data)) for data in round_again),
                delivery=delivery,
                errors=read_policy(errors, options),
                concurrency=calls,
                timeout=longest,
                states=definition.states,
                context=definition.process.context,
                timed=definition.on_timer is not None,
                place=place,
            )
            self._parts.append(service)
            return service

        return decorate

    def _known(self, part: str, given: Any, place: Place | None) -> tuple[Any, ...]:
        """Return the declared streams, tables and lake tables; report everything else."""
        kept = []
        known = [declared.name for declared in self._data]
        for data in given if isinstance(given, tuple | list) else (given,):
            if isinstance(data, Stream | Table | Lake):
                kept.append(data)
                continue
            hint = f"pass the object, not its name: {data} = app.stream({data!r}, ...)"
            if data not in known:
                hint = did_you_mean(data, known)
            text = f"{part} names {data!r}, which is not a stream or a table"
            self._problems.append(Problem("part.not-data", text, hint, place))
        return tuple(kept)

    def _is_one(self, part: str, given: Any, place: Place | None) -> bool:
        """Return whether something is one declared stream, table or lake; report if it is not."""
        if isinstance(given, tuple | list):
            text = f"{part} writes several, but can write only one stream or table"
            self._problems.append(
                Problem("part.not-data", text, "declare one part for each", place)
            )
            return False
        return bool(self._known(part, given, place))

    def _no_stream(self, given: Any, place: Place | None) -> Stream[Any]:
        """Report that something is not a stream, and return a stream in its place."""
        name = str(getattr(given, "name", given))
        streams = [data.name for data in self._data if isinstance(data, Stream)]
        text = f"{name!r} cannot be archived: it is not a stream"
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
            hint = "write a class with fields, and @record(...) above it"
            given: Any = cls
            if isinstance(given, type) and given.__module__ != "builtins":
                hint = f"put @record(...) above class {shown}"
            self._problems.append(Problem("data.not-a-record", text, hint, place))
            return RecordType(cls, Schema(name=shown, fields=()), place)
        self._record_types[f"{found.place}{found.name}"] = found
        return found

    def _options(self, kind: str, name: Any, place: Place | None) -> Options:
        return Options(f"{kind} {name!r}", place, self._problems)


def _called(function: Any) -> str:
    """Return the name of a function, a class, or the class of an object."""
    return str(getattr(function, "__name__", type(function).__name__))
