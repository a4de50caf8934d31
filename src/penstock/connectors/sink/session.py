"""Reads a stream, collects batches, and writes each with the position behind it.

One session has one consumer and one writer. Whatever fails ends it; the next one begins at what
was written. The outside system decides where that is, where it keeps positions: records in front
of them are left out. The offsets of the group follow behind each write.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event
from time import monotonic
from typing import Any, Protocol

from penstock.backbone.client.logrecord import Offsets, Partition, RawRecord
from penstock.connectors.connector import BatchLimits, Row, Writer
from penstock.connectors.progress import Progress
from penstock.connectors.retrying import Retries
from penstock.connectors.sink.batches import Batches
from penstock.core.graph.parts import Sink
from penstock.core.records.codec import Codec, JsonCodec
from penstock.core.records.deadletter import Coordinates, dead_letter_headers
from penstock.errors import DataError, PenstockError

__all__ = ["DeadLetterLog", "Run", "Session", "StreamReader"]

_AT_ONCE = 1_000
_WAIT_SECONDS = 0.1
_FLUSH = timedelta(seconds=10)


class StreamReader(Protocol):
    """A member of the sink's group."""

    def consume(self, count: int, timeout: float) -> Sequence[RawRecord]:
        """Return up to so many records as soon as there is one."""

    def commit(self, offsets: Offsets) -> None:
        """Make these the group's offsets."""


class DeadLetterLog(Protocol):
    """A producer of dead letters."""

    def send(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Queue one record."""

    def flush(self, timeout: timedelta) -> None:
        """Wait until all are on the log; TransientError if the time is too short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What all sessions of one run of a sink have in common."""

    sink: Sink
    limits: BatchLimits
    dead_letters: str
    stop: Event
    progress: Progress
    retries: Retries
    clock: Callable[[], float] = monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Session:
    """One consumer and one writer, from what was written on."""

    def __init__(self, run: Run, *, writer: Writer, letters: DeadLetterLog) -> None:
        topic = run.sink.reads.topic
        self._run = run
        self._topic = topic.name
        self._codec: Codec[Any] = JsonCodec(run.sink.reads.record, max_bytes=topic.max_record_bytes)
        self._writer = writer
        self._letters = letters
        self._written = dict(writer.positions())
        self._batches = Batches(run.limits)

    def read_on(self, reader: StreamReader) -> None:
        """Read and write until the site stops, then write what is held."""
        run = self._run
        run.progress.running()
        while not run.stop.is_set():
            for raw in reader.consume(_AT_ONCE, _WAIT_SECONDS):
                self._take(raw, reader)
            for partition in self._batches.due(run.clock()):
                self._write(partition, reader)
        for partition in self._batches.held():
            self._write(partition, reader)

    def lose(self, partitions: Collection[Partition]) -> None:
        """Forget what is held of partitions that are not this member's any more."""
        dropped = self._batches.drop([number for _, number in partitions])
        self._run.progress.forget(dropped)

    def _take(self, raw: RawRecord, reader: StreamReader) -> None:
        partition, offset = raw.partition() or 0, raw.offset() or 0
        now, value = self._run.clock(), raw.value()
        if offset < self._written.get(partition, 0):
            self._batches.skip(partition, offset, at=now)
            return
        self._run.progress.took(1)
        try:
            record = self._codec.accept(raw.key(), value)
        except DataError as error:
            self._bury(raw, error, Coordinates(self._topic, partition, offset))
            self._batches.bury(partition, offset, at=now)
            return
        row = Row(record, self._in_utf8(value or b"", record), offset)
        if self._batches.add(partition, row, at=now):
            self._write(partition, reader)

    def _in_utf8(self, value: bytes, record: Any) -> bytes:
        """Return the record as it stands on the log; what it declares, if the rest is no text.

        Fields that nobody declared are not looked at by the codec, and may hold any bytes.
        """
        try:
            value.decode()
        except UnicodeDecodeError:
            return self._codec.encode(record)
        return value

    def _bury(self, raw: RawRecord, error: PenstockError, place: Coordinates) -> None:
        own = raw.headers() or ()
        marks = dead_letter_headers(error, place, part=self._run.sink.name, at=self._run.now())
        self._letters.send(
            self._run.dead_letters, key=raw.key(), value=raw.value(), headers=[*own, *marks]
        )

    def _write(self, partition: int, reader: StreamReader) -> None:
        """Write a batch, then move the group behind it."""
        batch = self._batches.take(partition)
        progress = self._run.progress
        if batch.dead:
            self._letters.flush(_FLUSH)
        if batch.rows:
            self._writer.write(partition, batch.rows, batch.position)
        self._written[partition] = max(batch.position, self._written.get(partition, 0))
        progress.settled(passed=len(batch.rows), filtered=0, dead_lettered=batch.dead)
        progress.running()
        self._run.retries.succeeded()
        reader.commit({(self._topic, partition): batch.position})
