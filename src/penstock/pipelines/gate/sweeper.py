"""The dead letters of a pipeline, written once each, without decoding its input twice.

A batch counts the rows that its gate refused. Only where there are any, exactly the offsets of the
batch are read again and the refused rows written to the dead-letter topic, together with the
sweeper's own position: one transaction for both. The position never passes a row that was not
checked, so the next start repeats a sweep that a crash prevented.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias, TypedDict

from pyspark.sql import DataFrame, SparkSession

from penstock.backbone.client.logrecord import LogRecord, Partition, RawRecord
from penstock.backbone.log.positions import PositionStore, position_group
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.site import Site
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import OnLog
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, RealTime
from penstock.core.records.codec import JsonCodec
from penstock.core.records.deadletter import Coordinates, dead_letter_headers, read_letter
from penstock.errors import DataError
from penstock.pipelines.checkpoint.batches import Offsets
from penstock.pipelines.gate.gate import refused
from penstock.pipelines.gate.reading import OffsetRange, topic_rows
from penstock.pipelines.gate.suspects import refused_records, suspicious_range
from penstock.pipelines.gate.sweepranges import (
    behind,
    is_forgotten,
    ranges_to_sweep,
    starting_position,
)

__all__ = ["BATCH_RECORDS", "Found", "Letter", "Sweeper", "dead_letter"]

BATCH_RECORDS = 500
"""Dead letters in one transaction."""
FEW_OFFSETS = 20_000
"""A range of up to this many records is read in this process, because a Spark job takes longer."""


class Letter(TypedDict):
    """A dead letter as a producer takes it."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


Found: TypeAlias = tuple[int, int, list[Letter]]
"""Partition, offset, and the record that is written because of it."""


class Sweeper:
    """Follows one pipeline. Its errors are the backbone's; after one it can be called again.

    ``after``: offsets before which the pipeline reads nothing of its topics.
    """

    def __init__(
        self,
        graph: Graph,
        pipeline: Pipeline,
        site: Site,
        spark: SparkSession,
        *,
        into: str,
        name: str = "deadletters",
        after: Mapping[Partition, int] = MappingProxyType({}),
    ) -> None:
        self._pipeline = pipeline
        self._site = site
        self._spark = spark
        self._into = into
        self._name = f"{name}.{graph.app}.{pipeline.name}"
        self._after = after
        self._inputs = {data.topic.name: data for data in pipeline.reads if data.kind != "lake"}
        self._position: Offsets | None = None
        self._saved: Offsets = {}
        self._producer: TransactionalProducer | None = None
        self.written = 0
        """Letters written since it was made, also by a sweep that an error cut short."""

    def follow(self, start: Offsets, end: Offsets, *, rejected: bool) -> None:
        """Process a finished batch: write its dead letters.

        After an error only the durable position is to be trusted; the same batch may be given
        again.
        """
        try:
            self._follow(start, end, rejected=rejected)
        except BaseException:
            self._position = None
            raise

    def catch_up(self, done: Offsets) -> None:
        """Check everything before these offsets that was not checked before."""
        self.follow({}, done, rejected=True)

    def _follow(self, start: Offsets, end: Offsets, *, rejected: bool) -> None:
        position = self._begin()
        for topic, over in ranges_to_sweep(position, start, end, rejected=rejected).items():
            self._sweep(topic, over)
        position |= {at: offset for at, offset in end.items() if offset > position.get(at, 0)}

    def save(self) -> None:
        """Make the position durable, so that the next start need not look at the past again."""
        if self._position and self._position != self._saved:
            with self._transaction() as producer:
                producer.commit(self._position, group=position_group(self._name))
            self._saved = dict(self._position)

    def close(self) -> None:
        """Release the producer."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _begin(self) -> Offsets:
        if self._position is None:
            # First the producer: it ends a transaction that its predecessor left half done, and
            # only then the position stands.
            self._transaction()
            position = dict(PositionStore(self._site.connection).read(self._name))
            topics = Topics(self._site.connection)
            ends = {
                (topic, number): span
                for topic in self._inputs
                for number, span in topics.ends(topic).items()
            }
            if is_forgotten(position, ends):
                position = behind(self._letters_written()) | position
            self._position = starting_position(position, ends, self._after)
        return self._position

    def _letters_written(self) -> Iterator[Coordinates]:
        """Yield the records that its letters are about: a cluster forgets positions in time."""
        for record in LogReader(self._site.connection).read(self._into):
            part, place = self.origin(record)
            if part == self._pipeline.name and place.topic in self._inputs:
                yield place

    def origin(self, record: LogRecord) -> tuple[str, Coordinates]:
        """Return by which part, and for which record, something was written."""
        letter = read_letter(record.key, record.value, record.headers)
        return letter.part, letter.coordinates

    def found(self, rows: DataFrame, data: OnLog) -> Iterator[Found]:
        """Yield what is to be written, in the order of each partition."""
        letters = refused(rows, data, natively=self._natively)
        for row in letters.orderBy("partition", "offset").toLocalIterator():
            letter = dead_letter(row, data, part=self._pipeline.name)
            yield row["partition"], row["offset"], [letter]

    def found_quickly(self, topic: str, over: OffsetRange) -> Iterator[Found] | None:
        """Return the same without Spark, where that is possible and the range is small."""
        if self._natively or sum(end - start for start, end in over.values()) > FEW_OFFSETS:
            return None
        data = self._inputs[topic]
        rows = map(_row, refused_records(self._site.connection, data, over))
        letters = ((row, dead_letter(row, data, part=self._pipeline.name)) for row in rows)
        return ((row["partition"], row["offset"], [letter]) for row, letter in letters)

    @property
    def _natively(self) -> bool:
        return isinstance(self._pipeline.trigger, RealTime)

    def _look(self, topic: str, over: OffsetRange) -> Iterator[Found]:
        if (found := self.found_quickly(topic, over)) is not None:
            return found
        if self._natively:
            over = suspicious_range(self._site.connection, self._inputs[topic], over)
            if not over:
                return iter(())
        rows = topic_rows(self._spark, self._site.connection, topic, over=over)
        return self.found(rows, self._inputs[topic])

    def _sweep(self, topic: str, over: OffsetRange) -> None:
        found = self._look(topic, over)
        while chunk := list(islice(found, BATCH_RECORDS)):
            with self._transaction() as producer:
                for letter in (letter for _, _, letters in chunk for letter in letters):
                    producer.send(self._into, **letter)
                passed = {(topic, number): offset + 1 for number, offset, _ in chunk}
                producer.commit(passed, group=position_group(self._name))
            self.written += sum(len(letters) for _, _, letters in chunk)

    def _transaction(self) -> "_Transaction":
        if self._producer is None or self._producer.dead:
            self._producer = TransactionalProducer(self._site.connection, self._name)
        return _Transaction(self._producer)


class _Transaction:
    """A transaction that is aborted if its block does not commit it."""

    def __init__(self, producer: TransactionalProducer) -> None:
        self._producer = producer

    def __enter__(self) -> TransactionalProducer:
        self._producer.begin()
        return self._producer

    def __exit__(self, *_: object) -> None:
        if not self._producer.dead:
            self._producer.abort()


def _row(raw: RawRecord) -> dict[str, Any]:
    """Return a record of the log as Spark shows it."""
    return {
        "topic": raw.topic(),
        "partition": raw.partition() or 0,
        "offset": raw.offset() or 0,
        "key": raw.key(),
        "value": raw.value(),
        "headers": [{"key": name, "value": value} for name, value in raw.headers() or ()],
    }


def dead_letter(row: Any, data: OnLog, *, part: str) -> Letter:
    """Return a refused row as it was, with headers that say why and where it stood."""
    key, value = _bytes(row["key"]), _bytes(row["value"])
    marks = dead_letter_headers(
        _reason(data, key, value),
        Coordinates(row["topic"], row["partition"], row["offset"]),
        part=part,
        at=datetime.now(UTC),
    )
    kept = [(header["key"], _bytes(header["value"])) for header in row["headers"] or ()]
    return {"key": key, "value": value, "headers": [*kept, *marks]}


def _reason(data: OnLog, key: bytes | None, value: bytes | None) -> DataError:
    """Return why a row is no record, in the codec's own words."""
    codec = JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)
    try:
        codec.accept(key, value)
    except DataError as error:
        return error
    name = data.record.name
    return DataError(f"not a {name}: Spark's reader cannot tell its fields", code="data.unreadable")


def _bytes(value: bytearray | bytes | None) -> bytes | None:
    return None if value is None else bytes(value)
