"""Runs the services of an application in a test, without a broker, a JVM, threads or a real clock.

The services run the same code as on a broker. Only the log is in memory.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, TypeVar

from penstock.backbone.client.logrecord import Partition
from penstock.core.app import App
from penstock.core.expression.values.times import from_micros
from penstock.core.graph.data import OnLog, Stream, Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Actor, Service
from penstock.core.records.codec import JsonCodec
from penstock.core.records.eventtime import event_time_of
from penstock.core.records.rowkey import row_of
from penstock.core.rollup.late import LATE_RECORD, LateRecord
from penstock.core.rules.check import verified
from penstock.core.status.eventtimes import EventTimes
from penstock.core.status.report import Counts
from penstock.core.units import duration
from penstock.services.state.states import States
from penstock.testing.clock import START_AT, ManualClock
from penstock.testing.deadletters import DeadLetter, read_dead_letter
from penstock.testing.engine import MemoryEngine
from penstock.testing.memorylog import MemoryLog, MemoryRecord
from penstock.testing.partitions import cut_graph, cut_topics

__all__ = ["Driver"]

T = TypeVar("T")


class Driver:
    """Run the services of an application in a test: pipe records in, read records out.

    It runs the code of production; only the log is in memory. Every call returns when all services
    have handled all that they can see. Time stands still until the test moves it. Pipelines,
    sources and sinks do not run here: pipe what they would write.

    It raises a DefinitionError, with every problem, for an application that ``penstock check``
    refuses.

    Args:
        app: The application, or its graph.
        start_at: Where the clock begins.
        partitions: How many partitions every topic has, instead of as declared.
        auto_commit: Commit as records are handled. If False, nothing is committed before
            ``commit``, so that the test decides what a ``crash`` takes away.

    Examples:
        >>> from penstock import App, State, record
        >>> @record(key="word")
        ... class Word:
        ...     word: str
        >>> @record(key="word")
        ... class Count:
        ...     word: str
        ...     count: int
        >>> app = App("demo")
        >>> words, counts = app.stream("words", Word), app.stream("counts", Count)
        >>> @app.service(reads=words, writes=counts)
        ... def count_words(word: Word, total: State[int]) -> Count:
        ...     total.set(total.get(0) + 1)
        ...     return Count(word.word, total.get(0))
        >>> driver = Driver(app)
        >>> driver.pipe(words, Word("water"), Word("water"))
        >>> driver.crash()
        >>> driver.restart()
        >>> driver.pipe(words, Word("water"))
        >>> driver.read(counts)[-1]
        Count(word='water', count=3)
    """

    def __init__(
        self,
        app: App | Graph,
        *,
        start_at: datetime = START_AT,
        partitions: int | None = None,
        auto_commit: bool = True,
    ) -> None:
        graph = verified(app.graph if isinstance(app, App) else app)
        self._graph = cut_graph(graph, partitions) if partitions else graph
        self._clock = ManualClock(start_at)
        self._event_time_at: datetime | None = None
        topics = cut_topics(graph, partitions) if partitions else graph.topics()
        self._log = MemoryLog(topics, clock=self._clock)
        self._codecs: dict[str, JsonCodec[Any]] = {
            data.name: JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)
            for data in self._graph.on_log
        }
        self._read_to: dict[Partition, int] = {}
        self._engine = MemoryEngine(
            self._graph, self._log, clock=self._clock, auto_commit=auto_commit
        )
        self.restart()

    @property
    def now_at(self) -> datetime:
        """The driver's clock, which services see as ``Context.now_at``."""
        return self._clock.now_at

    @property
    def event_time_at(self) -> datetime | None:
        """The newest event time of all records so far, or what the test has set it to."""
        return self._event_time_at

    def pipe(
        self,
        stream: Stream[T] | Table[T],
        *records: T,
        at: datetime | None = None,
        key: bytes | None = None,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        """Append records and let the services process them.

        Args:
            stream: where the records go
            records: the records
            at: when they were written; by default now
            key: another key than that of the record
            headers: headers of each record

        It raises a TypeError for what is not a record of the stream, and DataError for a record
        that no reader would accept. ``pipe_raw`` appends anything.
        """
        codec = self._codec(stream)
        for record in records:
            if not isinstance(record, stream.record.cls):
                found, held = type(record).__name__, stream.record.name
                raise TypeError(f"{stream.name} holds {held}, and was given {found}")
        written = [(codec.encode_valid(record), record) for record in records]
        for value, record in written:
            self._append(stream, key or codec.key(record), value, at, headers)
            self._see(stream, record)
        self._engine.flow()

    def pipe_raw(
        self,
        stream: OnLog,
        key: bytes | None,
        value: bytes | None,
        *,
        at: datetime | None = None,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        """Append bytes as they are, valid or not, and let the services process them."""
        self._codec(stream)
        self._append(stream, key, value, at, headers)
        self._engine.flow()

    def delete(self, table: Table[Any], key: Any) -> None:
        """Delete a row of a table, as another writer would, and let the services process it.

        ``key`` is the value of the key field, or a tuple, as in ``table``.
        """
        row = row_of(table.record.schema, key)
        self.pipe_raw(table, self._codec(table).key(row), None)

    def read(self, stream: Stream[T] | Table[T]) -> list[T]:
        """Return the records since the last reading, in order within each partition.

        Deletions of rows are left out. Raises DataError if bytes from ``pipe_raw`` do not
        decode.
        """
        decode, deletes = self._codec(stream).decode, isinstance(stream, Table)
        found = [raw.value() for raw in self.read_raw(stream)]
        return [decode(value) for value in found if value is not None or not deletes]

    def read_raw(self, stream: OnLog) -> list[MemoryRecord]:
        """Return the records since the last reading as they are: key, value, headers, offset."""
        self._codec(stream)
        found: list[MemoryRecord] = []
        for partition in self._log.partitions(stream.topic.name):
            records = self._log.read(partition, self._read_to.get(partition, 0))
            self._read_to[partition] = self._read_to.get(partition, 0) + len(records)
            found += records
        return found

    def table(self, table: Table[T]) -> dict[Any, T]:
        """Return the current rows of a table: the latest record of each key.

        The key is the value of the key field, or a tuple if the type has several key fields.
        """
        codec, latest = self._codec(table), dict[bytes, bytes | None]()
        if not isinstance(table, Table):
            raise TypeError(f"{table.name} is not a table: read(...) gives the records of a stream")
        for partition in self._log.partitions(table.topic.name):
            latest |= {raw.key() or b"": raw.value() for raw in self._log.read(partition)}
        decode, key_of = codec.decode, attrgetter(*table.record.schema.key)
        records = [decode(value) for value in latest.values() if value is not None]
        return {key_of(record): record for record in records}

    def dead_letters(self) -> list[DeadLetter]:
        """Return all dead letters so far."""
        return [
            read_dead_letter(raw)
            for partition in self._log.partitions(self._graph.dead_letters.name)
            for raw in self._log.read(partition)
        ]

    def late_records(self) -> list[LateRecord]:
        """Return all entries of the late ledger so far; empty if nothing has windows."""
        decode = JsonCodec(LATE_RECORD).decode
        if not self._graph.has_late_records:
            return []
        return [
            decode(raw.value())
            for partition in self._log.partitions(self._graph.late_records.name)
            for raw in self._log.read(partition)
        ]

    def state(self, service: Service, key: Any, *, name: str | None = None) -> Any:
        """Return the state of a key in a running service; None if it has none.

        ``key`` is the value of the key field, a tuple if the type has several, or the bytes of the
        Kafka key. ``name`` is the name of the state. You may omit it if there is only one, and for
        the fields of an actor.
        """
        alone = len(service.states) == 1 or isinstance(service, Actor)
        name = name or (service.states[0].name if alone else None)
        wanted = key if isinstance(key, bytes) else self._key(service, key)
        for task in self._engine.running(service):
            states = task.step.states
            cells = states.named(name or "") if isinstance(states, States) else None
            if cells is None:
                known = ", ".join(spec.name for spec in service.states) or "none"
                raise LookupError(f"which state of {service.name!r}? it has {known}")
            if (found := cells.value_of(wanted)) is not None:
                return found
        return None

    def facts(self, service: Service) -> dict[str, int]:
        """Return how many keys, timers, panes and late records a running service has."""
        found: Counter[str] = Counter()
        for task in self._engine.running(service):
            found.update(task.step.facts())
        return dict(found)

    def event_times(self, service: Service) -> EventTimes:
        """Return the watermark of a running service's windows or timers, as `status` shows it."""
        return EventTimes.of_all(task.step.event_times() for task in self._engine.running(service))

    def counts(self, service: Service) -> Counts:
        """Return what became of the records of a service; uncommitted ones are in flight."""
        return self._engine.counts(service)

    def advance_clock(self, span: str | timedelta) -> None:
        """Move the clock, and stop on the way wherever something is due."""
        target_at = self.now_at + duration(span)
        while (wakes_at := self._engine.wakes_at()) and self.now_at < wakes_at <= target_at:
            self._clock.advance(wakes_at - self.now_at)
            self._engine.flow()
        self._clock.advance(target_at - self.now_at)
        self._engine.flow()

    def advance_event_time(self, to: datetime | str | timedelta) -> None:
        """Move event time to an instant, or on by a span. It never goes back."""
        if not isinstance(to, datetime):
            to = (self._event_time_at or self.now_at) + duration(to)
        if self._event_time_at is not None and to < self._event_time_at:
            raise ValueError(f"event time cannot go back to {to.isoformat()}")
        self._event_time_at = to
        self._engine.advance(to)
        self._engine.flow()

    def commit(self, service: Service | None = None) -> None:
        """Let one service, or each in turn, commit what it has processed."""
        self._engine.commit(service)
        self._engine.flow()

    def crash(self, service: Service | None = None) -> None:
        """Kill one service, or all. What they did not commit is lost.

        A killed service does nothing before ``restart``. ``close`` is not called, as in a
        process that is killed.
        """
        self._engine.crash(service)

    def stop(self, service: Service | None = None) -> None:
        """Stop one service, or all, cleanly: they commit, and ``close`` is called.

        A stopped service does nothing before ``restart``.
        """
        self._engine.stop(service)
        self._engine.flow()

    def restart(self) -> None:
        """Start every service that is down, from its changelog and its committed offsets."""
        self._engine.restart()
        self._engine.flow()

    def _codec(self, data: Any) -> JsonCodec[Any]:
        """Return the codec of a stream or table; TypeError if the application has no such thing."""
        if isinstance(data, Stream | Table) and data.name in self._codecs:
            return self._codecs[data.name]
        named = data.name if isinstance(data, Stream | Table | Service) else data
        raise TypeError(
            f"{self._graph.app} has no stream or table {named!r}; pass what app.stream(...) or "
            "app.table(...) returned"
        )

    def _key(self, service: Service, key: Any) -> bytes:
        """Return the Kafka key of a value of the key field; a text is the key already."""
        if isinstance(key, str):
            return key.encode()
        read = service.reads[0]
        return self._codec(read).key(row_of(read.record.schema, key)) or b""

    def _append(
        self,
        stream: OnLog,
        key: bytes | None,
        value: bytes | None,
        at: datetime | None,
        headers: Mapping[str, bytes] | None,
    ) -> None:
        self._log.append(
            stream.topic.name,
            key=key,
            value=value,
            headers=tuple((headers or {}).items()),
            partition="round_robin" if stream.topic.partitioning == "round_robin" else None,
            written_at=at,
        )

    def _see(self, stream: OnLog, record: Any) -> None:
        """Note the event time of a record."""
        if (read := event_time_of(stream.record.schema)) is None:
            return
        happened_at = from_micros(read(record))
        if happened_at is None:  # services do not take it for an instant either
            return
        if self._event_time_at is None or happened_at > self._event_time_at:
            self._event_time_at = happened_at
