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
from typing import Protocol

from penstock.backbone.client.logrecord import Offsets, Partition, RawRecord
from penstock.connectors.connector import BatchLimits, Row, RowsRefusedError, Writer
from penstock.connectors.progress import Progress
from penstock.connectors.retrying import Retries
from penstock.connectors.sink.batches import Batches
from penstock.connectors.sink.intake import Intake
from penstock.core.graph.parts import Sink
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
        self._intake = Intake(run.sink.reads)
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
            row = self._intake.take(raw, offset)
        except DataError as error:
            self._bury(raw.key(), value, raw.headers() or (), error=error, at=(partition, offset))
            self._batches.bury(partition, offset, at=now)
            return
        if self._batches.add(partition, row, at=now):
            self._write(partition, reader)

    def _bury(
        self,
        key: bytes | None,
        value: bytes | None,
        own: Sequence[tuple[str, bytes | None]],
        *,
        error: PenstockError,
        at: tuple[int, int],
    ) -> None:
        run, place = self._run, Coordinates(self._topic, *at)
        marks = dead_letter_headers(error, place, part=run.sink.name, at=run.now())
        self._letters.send(run.dead_letters, key=key, value=value, headers=[*own, *marks])

    def _write(self, partition: int, reader: StreamReader) -> None:
        """Write a batch, then move the group behind it."""
        batch = self._batches.take(partition)
        progress = self._run.progress
        if batch.dead:
            self._letters.flush(_FLUSH)
        passed = self._settle(partition, batch.rows, batch.position)
        self._written[partition] = max(batch.position, self._written.get(partition, 0))
        refused = len(batch.rows) - passed
        progress.settled(passed=passed, filtered=0, dead_lettered=batch.dead + refused)
        progress.running()
        self._run.retries.succeeded()
        reader.commit({(self._topic, partition): batch.position})

    def _settle(self, partition: int, rows: Sequence[Row], position: int) -> int:
        """Write rows; those that the system refuses become dead letters. Return how many it took.

        They are on the log before the others are written: after a crash one may be there twice.
        """
        while rows:
            try:
                self._writer.write(partition, rows, position)
            except RowsRefusedError as refused:
                rows = self._without(refused, rows, partition)
            else:
                break
        return len(rows)

    def _without(self, refused: RowsRefusedError, rows: Sequence[Row], partition: int) -> list[Row]:
        """Make dead letters of what was refused; return the others."""
        for number, words in refused.refusals.items():
            row = rows[number]
            error = DataError(words, code=refused.code)
            value = None if row.change == "delete" else row.value
            place = (partition, row.offset)
            self._bury(row.key, value, row.headers, error=error, at=place)
        self._letters.flush(_FLUSH)
        return [row for number, row in enumerate(rows) if number not in refused.refusals]
