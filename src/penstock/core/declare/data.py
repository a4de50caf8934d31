"""The methods of `App` that declare data: streams, tables, lake tables, archives."""

from datetime import timedelta
from typing import Any, TypeVar, Unpack, get_args, overload

from penstock.core.declare.arguments import read_event_time, read_trigger
from penstock.core.declare.declarations import Declarations, Engine, inherited_event_time
from penstock.core.declare.keywords import StreamOptions, TableOptions
from penstock.core.graph.data import LAKE_HISTORY, Archive, Lake, Stream, Table
from penstock.core.graph.parts import Pipeline, micro_batch
from penstock.core.operators.operator import Operator
from penstock.core.place import caller
from penstock.core.records.days import Day
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import RecordType
from penstock.core.rollup.aggregation import Aggregation
from penstock.core.rules.archive import PARTITIONED_BY
from penstock.core.topic import (
    DEFAULT_MAX_RECORD_BYTES,
    DEFAULT_PARTITIONS,
    Partitioning,
    TopicSpec,
)

__all__ = ["DeclaresData"]

T = TypeVar("T")

_WEEK = timedelta(days=7)
_MAX_RECORD = DEFAULT_MAX_RECORD_BYTES


def _unchanged(records: Any) -> Any:
    return records


class DeclaresData:
    """Declares streams, tables, lake tables and archives, with their options."""

    _declared: Declarations

    @overload
    def stream(
        self, name: str, record: Aggregation | Operator, **options: Unpack[StreamOptions]
    ) -> Stream[Any]: ...
    @overload
    def stream(self, name: str, record: type[T], **options: Unpack[StreamOptions]) -> Stream[T]: ...
    def stream(
        self,
        name: str,
        record: type[Any] | Aggregation | Operator,
        *,
        on: Engine = "spark",
        partitions: int = 2,
        partition_by: Partitioning | None = None,
        retention: str | timedelta | None = "7d",
        retention_size: str | None = None,
        replication: int | None = None,
        max_record: str | int = "1MiB",
        event_time: EventTime | None = None,
    ) -> Stream[Any]:
        """Declare a stream: records of one type on a topic with the stream's name.

        Records of one key keep their order. Nothing runs on a topic that contradicts this.

        Args:
            name: The name of the stream and of its topic; it is the stream's identity.
            record: A class with ``@record``, or what computes it: an aggregation, a selection, a
                merge, a join.
            on: What it is computed on: ``"spark"`` or ``"services"``.
            partitions: How many partitions the topic has.
            partition_by: ``"key"`` (the default of types with a key) or ``"round_robin"``.
            retention: How long records are kept; None keeps them for ever.
            retention_size: How many bytes of each partition are kept, as ``"10GiB"``.
            replication: How many copies; None takes the setting ``kafka.replication``.
            max_record: How large a record may be.
            event_time: How the watermark follows the records: ``EventTime(disorder="30s")``; by
                default as it follows those that they are computed from.

        Examples:
            >>> audit = app.stream("audit", Alarm, partitions=4, retention="90d")
        """
        place = caller()
        options = self._declared.options("stream", name, place)
        name, engine = options.name(name), options.word("on", on, get_args(Engine), "spark")
        number = options.count("partitions", partitions, DEFAULT_PARTITIONS)
        given = self._declared.settled(name, record, on=engine, partitions=number, place=place)
        found: RecordType[Any] = self._declared.record_type(name, given, place)
        usual = "key" if found.schema.key else "round_robin"
        by = usual if partition_by is None else partition_by
        topic = TopicSpec(
            name=name,
            partitions=number,
            partitioning=options.word("partition_by", by, get_args(Partitioning), "round_robin"),
            retention=options.maybe_span("retention", retention, _WEEK),
            retention_bytes=options.maybe_size("retention_size", retention_size, _MAX_RECORD),
            replication=options.maybe_count("replication", replication),
            max_record_bytes=options.size("max_record", max_record, _MAX_RECORD),
        )
        time = event_time or inherited_event_time(given, found)
        time = read_event_time(time, options)
        stream = Stream(name=name, record=found, topic=topic, event_time=time, place=place)
        self._declared.data.append(stream)
        self._declared.fill(stream, given, engine, place)
        return stream

    @overload
    def table(
        self, name: str, record: Aggregation | Operator, **options: Unpack[TableOptions]
    ) -> Table[Any]: ...
    @overload
    def table(self, name: str, record: type[T], **options: Unpack[TableOptions]) -> Table[T]: ...
    def table(
        self,
        name: str,
        record: type[Any] | Aggregation | Operator,
        *,
        on: Engine = "spark",
        partitions: int = 2,
        replication: int | None = None,
        max_record: str | int = "1MiB",
        history: str | timedelta | None = None,
    ) -> Table[Any]:
        """Declare a table: the latest record of each key, on a compacted topic.

        Its record type needs a key. Services and pipelines write rows and delete them. Instead of
        a record type, a windowed aggregation fills the table with the latest result of each window;
        so does any other operator with its rows.

        Args:
            name: The name of the table and of its topic; it is the table's identity.
            record: A class with ``@record(key=...)``, or what computes its rows.
            on: What computes them: ``"spark"`` or ``"services"``.
            partitions: How many partitions the topic has.
            replication: How many copies; None takes the setting ``kafka.replication``.
            max_record: How large a row may be.
            history: For how long joins find the row that held at the event time of a record. The
                record type needs an event time. A row that is older than the latest of its key then
                does not replace it where the table is joined or aggregated. None: the row that came
                last counts.

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
        engine = options.word("on", on, get_args(Engine), "spark")
        given = self._declared.settled(
            name, record, on=engine, partitions=topic.partitions, place=place
        )
        found: RecordType[Any] = self._declared.record_type(name, given, place, shape="table")
        kept = options.maybe_span("history", history, LAKE_HISTORY)
        table = Table(name=name, record=found, topic=topic, history=kept, place=place)
        self._declared.data.append(table)
        self._declared.fill(table, given, engine, place)
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

    def archive(
        self, stream: Stream[T], *, name: str | None = None, every: str | timedelta = "0s"
    ) -> Archive[T]:
        """Declare that the records of a stream are kept in the lake.

        A pipeline ``<name>.filling`` copies each record with its place on the log, exactly once.
        Dead letters are left out. A pipeline or window that reads ``archive.then_live`` gets this
        history first, and then the log, each record once.

        Args:
            stream: The stream.
            name: The name of the lake table; ``<stream>.archive`` by default.
            every: A batch begins at most this often; longer means fewer and larger files.

        Examples:
            >>> archive = app.archive(readings)
            >>> archive.name, archive.filling
            ('readings.archive', 'readings.archive.filling')
        """
        place = caller()
        given: Any = stream
        live = given.live if isinstance(given, Stream) else self._declared.no_stream(given, place)
        options = self._declared.options("archive", name, place)
        archive = Archive(
            name=options.name(f"{live.name}.archive" if name is None else name),
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
                trigger=read_trigger(micro_batch(every=every), options),
                place=place,
            )
        )
        return archive
