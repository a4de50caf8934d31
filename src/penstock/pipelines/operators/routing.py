"""From the rows of topics to the arrivals of an operator's machines, before the shuffle.

A task reads partitions of the topics. Each record goes to the bucket of its key, those of broadcast
tables to all. A bucket also hears how far event time is in each partition, before its own records
as after them: it would otherwise take a late record for one in time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zlib import crc32

import pyarrow as pa

from penstock.core.operators.operator import Input, Plan
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.times import BEGINNING
from penstock.core.panes.watermark import WatermarkRule

__all__ = [
    "BUCKET",
    "COLUMNS",
    "PAYLOAD",
    "PLACES",
    "ROUTED",
    "Routed",
    "Router",
    "Ticker",
    "unpack",
]

BUCKET, PAYLOAD = "bucket", "payload"
PLACES = ("moment", "rank", "topic", "partition", "place")
"""By these arrivals are put in order; they are unique within a batch."""
ROUTED = f"{BUCKET} int, {', '.join(f'{each} bigint' for each in PLACES)}, {PAYLOAD} binary"

COLUMNS = ("topic", "partition", "offset", "stamp", "clock", "key", "value", "time")
"""What the rows have: coordinates, when they were written and the clock in microseconds, the bytes,
and the event time; null where they have none, or nothing but the key."""


class Routed(NamedTuple):
    """A record on its way to a bucket; without a record only its time is told."""

    moment: int
    """When it was written, never earlier than a record before it in the partition."""
    rank: int
    """Tables come before streams of the same moment."""
    topic: int
    partition: int
    place: int
    """Its order within the partition."""
    offset: int
    clock: int
    marks: bool
    """Whether it has no record, but says how far event time is."""
    key: bytes | None
    value: bytes | None
    time: int | None


def unpack(payload: bytes) -> list[Routed] | int:
    """Return what travelled together, or the clock of a beat."""
    found = decode(payload)
    return found if isinstance(found, int) else [Routed(*each) for each in found]


@dataclass(slots=True)
class _Source:
    """One partition, as far as it was read in this batch."""

    moment: int = 0
    count: int = 0
    newest: int = BEGINNING
    marked: dict[int, int] = field(default_factory=dict)
    """How far each bucket knows it to be."""
    last: Routed | None = None


@dataclass(frozen=True, slots=True)
class Router:
    """A function for ``mapInArrow``; ``topics`` are those of the inputs, in order.

    With ``singly`` each record is a row of its own, to be sorted by Spark.
    """

    plan: Plan
    topics: tuple[str, ...]
    buckets: tuple[int, ...]
    singly: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows for the buckets."""
        inputs: Mapping[str, Input] = {each.topic: each for each in reversed(self.plan.inputs)}
        sources: dict[tuple[int, int], _Source] = {}
        for batch in batches:
            came: dict[int, list[Routed]] = {}
            for row in zip(*(batch.column(each).to_pylist() for each in COLUMNS), strict=True):
                given = inputs[self.topics[row[0]]]
                source = sources.setdefault(row[:2], _Source())
                self._route(row, given, source, came)
            yield from self._packed(came)
        came = {}
        for source in sources.values():
            self._tell_all(source, came)
        yield from self._packed(came)

    def _route(
        self, row: tuple[Any, ...], given: Input, source: _Source, came: dict[int, list[Routed]]
    ) -> None:
        topic, partition, offset, stamp, clock, key, value, time = row
        source.moment = max(source.moment, stamp)
        source.count += 1
        found = Routed(
            source.moment,
            given.kind == "stream",
            topic,
            partition,
            2 * source.count,
            offset,
            clock,
            False,  # noqa: FBT003
            key,
            value,
            time,
        )
        if given.kind == "broadcast":
            for number in range(len(self.buckets)):
                came.setdefault(number, []).append(found)
            return
        number = crc32(key or b"") % len(self.buckets)
        mine = came.setdefault(number, [])
        timed = _believed(given.rule, time, clock)
        if timed is not None:
            if source.newest > source.marked.get(number, BEGINNING):
                mine.append(_mark(found, source.newest, place=found.place - 1))
            source.newest = max(source.newest, timed)
            source.marked[number] = source.newest
            source.last = found
        mine.append(found)

    def _tell_all(self, source: _Source, came: dict[int, list[Routed]]) -> None:
        """Tell every bucket how far a partition has come in all."""
        if source.last is None:
            return
        for number in range(len(self.buckets)):
            if source.marked.get(number, BEGINNING) < source.newest:
                mark = _mark(source.last, source.newest, place=2 * source.count + 1)
                came.setdefault(number, []).append(mark)

    def _packed(self, came: Mapping[int, list[Routed]]) -> Iterator[pa.RecordBatch]:
        rows = [
            (self.buckets[number], *first[:5], encode(together))
            for number, found in came.items()
            for first, together in (
                ((each, [each]) for each in found) if self.singly else ((found[0], found),)
            )
        ]
        if rows:
            yield _batch(rows)


@dataclass(frozen=True, slots=True)
class Ticker:
    """A function for ``mapInArrow`` that tells every bucket the time when no record does."""

    buckets: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each bucket."""
        for batch in batches:
            if batch.num_rows:
                beat = encode(batch.column(0)[0].as_py())
                yield _batch([(each, 0, 0, 0, 0, 0, beat) for each in self.buckets])
                return


def _believed(rule: WatermarkRule | None, time: int | None, clock: int) -> int | None:
    """Return the event time that a record moves its partition to; None: it moves nothing."""
    if rule is None or time is None or not rule.believes(time, clock):
        return None
    return time


def _mark(like: Routed, time: int, *, place: int) -> Routed:
    return like._replace(place=place, marks=True, key=None, value=None, time=time)


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    buckets, *places, payloads = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(buckets, pa.int32()),
            *(pa.array(map(int, each), pa.int64()) for each in places),
            pa.array(payloads, pa.binary()),
        ],
        [BUCKET, *PLACES, PAYLOAD],
    )
