"""The application: declarations in, a graph out. Declaring starts nothing and raises nothing.

Long because all that can be declared is declared here, each with its options and what they mean.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, TypeVar, get_args

from penstock.core.arguments import (
    read_calls,
    read_event_time,
    read_outputs,
    read_policy,
    read_trigger,
)
from penstock.core.declarations import Declarations, Engine
from penstock.core.graph.data import (
    LAKE_HISTORY,
    Archive,
    Data,
    Feedback,
    Lake,
    OnLog,
    Stream,
    Table,
)
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import (
    Connector,
    Delivery,
    MicroBatch,
    Pipeline,
    RealTime,
    Service,
    Sink,
    SinkConnector,
    Source,
)
from penstock.core.graph.policy import ErrorPolicy
from penstock.core.graph.signature import method, read_definition
from penstock.core.options import Options
from penstock.core.place import caller, did_you_mean, place_of
from penstock.core.records.days import Day
from penstock.core.records.eventtime import EventTime
from penstock.core.rollup.aggregation import Aggregation
from penstock.core.rules.archive import PARTITIONED_BY
from penstock.core.topic import (
    DEFAULT_MAX_RECORD_BYTES,
    DEFAULT_PARTITIONS,
    Partitioning,
    TopicSpec,
)
from penstock.errors import Problem

__all__ = ["App"]

T = TypeVar("T")

_WEEK = timedelta(days=7)
_MAX_RECORD = DEFAULT_MAX_RECORD_BYTES


OutputMode = Literal["append", "update", "complete"]


def _unchanged(records: Any) -> Any:
    return records


class App:
    """An application: a name, and everything that is declared under it.

    Declaring starts nothing and raises nothing. A mistake is kept with its line, and ``penstock
    check`` reports all of them at once. The methods return what they declare; give that to the
    declarations that use it. ``graph`` is the whole application as a value.

    The examples of the API reference go on from this one.

    Examples:
        >>> from datetime import UTC, datetime, timedelta
        >>> from penstock import App, record
        >>> app = App("plant")
        >>> @record(key="device", time="at")
        ... class Reading:
        ...     device: str
        ...     at: datetime
        ...     celsius: float
        >>> @record(key="device")
        ... class Alarm:
        ...     device: str
        ...     text: str
        >>> readings = app.stream("readings", Reading)
        >>> copies = app.stream("copies", Reading)
        >>> alarms = app.stream("alarms", Alarm)
        >>> hot = app.table("hot", Alarm)
        >>> app
        App('plant', 4 data, 0 parts)
    """

    def __init__(self, name: str) -> None:
        self._declared = Declarations()
        self.name = Options("the application", caller(), self._declared.problems).name(name)

    def __repr__(self) -> str:
        """Return the name and how much is declared."""
        declared = self._declared
        return f"App({self.name!r}, {len(declared.data)} data, {len(declared.parts)} parts)"

    @property
    def graph(self) -> Graph:
        """Everything declared so far, as a frozen value: what ``penstock check`` verifies.

        It may hold problems. Engines take only a graph without any.

        Examples:
            >>> [data.name for data in app.graph.data]
            ['readings', 'copies', 'alarms', 'hot']
        """
        from_records = [
            problem for found in self._declared.record_types.values() for problem in found.problems
        ]
        return Graph(
            app=self.name,
            data=tuple(self._declared.data),
            parts=tuple(self._declared.parts),
            problems=(*from_records, *self._declared.problems),
        )

    def stream(
        self,
        name: str,
        record: type[T] | Aggregation,
        *,
        on: Engine = "spark",
        partitions: int = 2,
        partition_by: Partitioning | None = None,
        retention: str | timedelta | None = "7d",
        retention_size: str | None = None,
        replication: int | None = None,
        max_record: str | int = "1MiB",
        event_time: EventTime | None = None,
    ) -> Stream[T]:
        """Declare a stream: records of one type on a topic with the stream's name.

        Records of one key keep their order. Nothing runs on a topic that contradicts this.

        Args:
            name: The name of the stream and of its topic; it is the stream's identity.
            record: A class with ``@record``, or a windowed aggregation, which gives its panes.
            on: What computes a windowed aggregation: ``"spark"`` or ``"services"``.
            partitions: How many partitions the topic has.
            partition_by: ``"key"`` (the default of types with a key) or ``"round_robin"``.
            retention: How long records are kept; None keeps them for ever.
            retention_size: How many bytes of each partition are kept, as ``"10GiB"``.
            replication: How many copies; None takes the setting ``kafka.replication``.
            max_record: How large a record may be.
            event_time: How the watermark follows the records: ``EventTime(disorder="30s")``.

        Examples:
            >>> audit = app.stream("audit", Alarm, partitions=4, retention="90d")
        """
        place = caller()
        options = self._declared.options("stream", name, place)
        name = options.name(name)
        found = self._declared.record_type(name, record, place)
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
        self._declared.data.append(stream)
        self._declared.fill(
            stream, record, options.word("on", on, get_args(Engine), "spark"), place
        )
        return stream

    def table(
        self,
        name: str,
        record: type[T] | Aggregation,
        *,
        on: Engine = "spark",
        partitions: int = 2,
        replication: int | None = None,
        max_record: str | int = "1MiB",
    ) -> Table[T]:
        """Declare a table: the latest record of each key, on a compacted topic.

        Its record type needs a key. Services and pipelines write rows and delete them. Instead of
        a record type, a windowed aggregation fills the table with the latest result of each window.

        Args:
            name: The name of the table and of its topic; it is the table's identity.
            record: A class with ``@record(key=...)``, or a windowed aggregation.
            on: What computes a windowed aggregation: ``"spark"`` or ``"services"``.
            partitions: How many partitions the topic has.
            replication: How many copies; None takes the setting ``kafka.replication``.
            max_record: How large a row may be.

        Examples:
            >>> app.table("latest", Reading).topic.compacted
            True
        """
        place = caller()
        options = self._declared.options("table", name, place)
        name = options.name(name)
        topic = TopicSpec(
            name=name,
            partitions=options.count("partitions", partitions, DEFAULT_PARTITIONS),
            retention=None,
            compacted=True,
            replication=options.maybe_count("replication", replication),
            max_record_bytes=options.size("max_record", max_record, _MAX_RECORD),
        )
        found = self._declared.record_type(name, record, place, shape="table")
        table = Table(name=name, record=found, topic=topic, place=place)
        self._declared.data.append(table)
        self._declared.fill(table, record, options.word("on", on, get_args(Engine), "spark"), place)
        return table

    def lake(
        self,
        name: str,
        record: type[T],
        *,
        partition_by: str | Day | tuple[str | Day, ...] = (),
        retention: str | timedelta | None = None,
        history: str | timedelta = "7d",
    ) -> Lake[T]:
        """Declare a lake table: all records of one type, in a Delta table.

        Pipelines write it, exactly once in micro-batches, and read it.

        Args:
            name: The name of the table; it is the table's identity.
            record: A class with ``@record``.
            partition_by: A field, ``day("at")``, or several of them in a tuple.
            retention: Days of event time that ended longer ago are deleted; None keeps all. It
                needs a partition for each day.
            history: For how long the table can be read as it was.

        Examples:
            >>> from penstock import day
            >>> kept = app.lake("kept", Reading, partition_by=day("at"), retention="400d")
            >>> kept.partition_columns
            ('at_day',)
        """
        place = caller()
        options = self._declared.options("lake table", name, place)
        name = options.name(name)
        lake = Lake(
            name=name,
            record=self._declared.record_type(name, record, place),
            partition_by=tuple(partition_by)
            if isinstance(partition_by, tuple | list)
            else (partition_by,),
            retention=options.maybe_span("retention", retention),
            history=options.span("history", history, LAKE_HISTORY),
            place=place,
        )
        self._declared.data.append(lake)
        return lake

    def archive(self, stream: Stream[T], *, name: str | None = None) -> Archive[T]:
        """Declare that the records of a stream are kept in the lake.

        A pipeline ``<name>.filling`` copies each record with its place on the log, exactly once.
        Dead letters are left out. A pipeline or window that reads ``archive.then_live`` gets this
        history first, and then the log, each record once.

        Args:
            stream: The stream.
            name: The name of the lake table; ``<stream>.archive`` by default.

        Examples:
            >>> archive = app.archive(readings)
            >>> archive.name, archive.filling
            ('readings.archive', 'readings.archive.filling')
        """
        place = caller()
        given: Any = stream
        live = given.live if isinstance(given, Stream) else self._declared.no_stream(given, place)
        archive = Archive(
            name=self._declared.options("archive", name, place).name(
                f"{live.name}.archive" if name is None else name
            ),
            record=live.record,
            partition_by=PARTITIONED_BY,
            stream=live,
            place=place,
        )
        self._declared.data.append(archive)
        self._declared.parts.append(
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
        """Declare that a connector feeds a stream.

        The connector says what a crash may do: a text file is read exactly once. An item that
        gives no valid record becomes a dead letter. Only one process feeds from a source at a
        time; a second one takes over.

        Args:
            name: The name of the source; its position belongs to it.
            connector: One of ``penstock.connectors``, or your own.
            into: The stream.
            parse: Makes a record of an item (of its text, if it is bytes), or None to skip it.
                Without it, bytes are a record as JSON, and anything else is a record.

        Examples:
            >>> from penstock.connectors import text_file
            >>> def parse(line: str) -> Reading:
            ...     device, celsius = line.split(",")
            ...     return Reading(device, datetime.now(UTC), float(celsius))
            >>> app.source("book", text_file("readings.csv"), into=readings, parse=parse).name
            'book'
        """
        place = caller()
        options = self._declared.options("source", name, place)
        name = options.name(name)
        given: Any = connector
        if not callable(getattr(given, "describe", None)):
            hint = 'penstock.connectors has them: text_file("lines.txt"), for example'
            options.wrong("connector", f"{given!r} is not a connector", hint)
        self._declared.problems += getattr(given, "problems", ())
        if parse is not None:
            options.function("parse", parse)
        source = Source(name=name, connector=connector, into=into, parse=parse, place=place)
        if self._declared.is_one(name, into, place):
            self._declared.parts.append(source)
        return source

    def sink(self, name: str, connector: SinkConnector, *, reads: Stream[Any]) -> Sink:
        """Declare that the records of a stream are written to an outside system.

        The connector says where to, and what a crash may do: ``json_files`` writes exactly once. A
        record that cannot be decoded becomes a dead letter.

        Args:
            name: The name of the sink, its identity: its progress belongs to it.
            connector: One of ``penstock.connectors``, or your own.
            reads: The stream.

        Examples:
            >>> from penstock.connectors import json_files
            >>> app.sink("export", json_files("out", every="1m"), reads=alarms).name
            'export'
        """
        place = caller()
        options = self._declared.options("sink", name, place)
        name = options.name(name)
        given: Any = connector
        if not callable(getattr(given, "describe", None)):
            hint = 'penstock.connectors has them: json_files("out"), for example'
            options.wrong("connector", f"{given!r} is not a connector", hint)
        self._declared.problems += getattr(given, "problems", ())
        sink = Sink(name=name, connector=connector, reads=reads, place=place)
        stream: Any = reads
        if isinstance(stream, Stream):
            self._declared.parts.append(sink)
        else:
            shown = getattr(stream, "name", stream)
            text = f"{name} reads {shown!r}, which is not a stream"
            streams = [data.name for data in self._declared.data if isinstance(data, Stream)]
            hint = did_you_mean(shown, streams)
            self._declared.problems.append(Problem("part.not-data", text, hint, place))
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
        """Declare a pipeline: a function from DataFrames to a DataFrame, run by Spark.

        Use it as a decorator. The function is called once, to build the plan, and starts nothing.
        Beside a stream, tables and lake tables are looked up, as they are at each batch. A row
        that its output does not accept stops the pipeline.

        Args:
            reads: What the function gets a frame of, in this order.
            writes: The stream, table or lake table that takes the rows.
            name: The name of the pipeline, its identity; by default that of the function.
            trigger: ``micro_batch()``, exactly once (default), or ``real_time()``, at least once.
            output: Spark's output mode; ``"update"`` into tables, else ``"append"``, by default.

        Examples:
            >>> @app.pipeline(reads=readings, writes=copies)
            ... def only_hot(readings):
            ...     return readings.where("celsius > 60")
            >>> only_hot.name
            'only_hot'
        """

        def decorate(function: Callable[..., Any]) -> Pipeline:
            place = place_of(function) or caller()
            options, called = self._declared.named("pipeline", name, function, place)
            options.function("what it computes", function)
            usual = "update" if isinstance(writes, Table) else "append"
            mode = usual if output is None else output
            pipeline = Pipeline(
                name=called,
                function=function,
                reads=self._declared.known(called, reads, place),
                writes=writes,
                trigger=read_trigger(trigger, options),
                output=options.word("output", mode, get_args(OutputMode), "append"),
                place=place,
            )
            if self._declared.is_one(called, writes, place):
                self._declared.parts.append(pipeline)
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
        """Declare a service: a function, or a class, that handles one record at a time.

        A decorator. The function returns one record, yields several, or returns None; each goes to
        the stream of its type. Parameters annotated ``State[...]``, ``Context`` or ``Timers`` get
        these. A class has ``process``, and may have ``open``, ``on_timer`` and ``close``. Outputs,
        state, timers and offsets are committed together, or not at all.

        Args:
            reads: One stream or table, or several in a tuple.
            writes: What it may write, one or several; empty: nothing.
            name: The name of the service, its identity; by default that of the function.
            delivery: ``"exactly_once"``, ``"at_least_once"`` or ``"at_most_once"``.
            errors: What happens to a record that fails; by default it becomes a dead letter.
            concurrency: How many calls of one partition may overlap; only if it is async (64).
            timeout: How long one call may take; only if it is async (30 s).

        Examples:
            >>> @app.service(reads=readings, writes=alarms)
            ... def warn(reading: Reading, hottest: State[float]) -> Alarm | None:
            ...     if reading.celsius > hottest.get(60.0):
            ...         hottest.set(reading.celsius)
            ...         return Alarm(reading.device, f"{reading.celsius} °C")
        """

        def decorate(function: Any) -> Service:
            place = place_of(method(function)) or caller()
            options, called = self._declared.named("service", name, function, place)
            plain, round_again = read_outputs(writes)
            definition = read_definition(function)
            calls, longest = read_calls(function, concurrency, timeout, options)
            service = Service(
                name=called,
                function=function,
                reads=self._declared.known(called, reads, place),
                writes=self._declared.known(called, plain, place),
                feedback=round_again,
                delivery=delivery,
                errors=read_policy(errors, options),
                concurrency=calls,
                timeout=longest,
                states=definition.states,
                context=definition.process.context,
                timed=definition.on_timer is not None,
                place=place,
            )
            self._declared.parts.append(service)
            return service

        return decorate
