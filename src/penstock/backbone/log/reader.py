"""Reads a range of the log: from anywhere, to a known end or for as long as one likes.

A range ends where the log ended when reading began. That offset may hold no record (transaction
markers, aborted records and compaction leave gaps), so the end is reached when the client's own
position reaches it, never by waiting for "the last record".
"""

# ruff: noqa: SLF001 - the client's own error names begin with an underscore

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Literal, TypedDict, Unpack, cast

import confluent_kafka
from confluent_kafka import KafkaError, Message, TopicPartition

from penstock.backbone.client.admin import Admin, topic_partitions
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.contact import LOG, take
from penstock.backbone.client.failures import beyond_end, trimmed, unreachable
from penstock.backbone.client.logrecord import LogRecord, Partition, RawRecord, log_record
from penstock.backbone.topics.range import EARLIEST, End, Last, Start
from penstock.backbone.topics.span import Ends, Span, chosen, starts, stops
from penstock.backbone.topics.topics import Topics
from penstock.errors import PenstockError

__all__ = ["LogReader", "ReadOptions", "WhenTrimmed"]

WhenTrimmed = Literal["stop", "skip"]
"""What to do when retention has deleted records that were still to be read."""

_BATCH = 2000
_POLL_SECONDS = 0.1
_QUEUED_KBYTES = 16 << 10
_PARTITION_FETCH_BYTES = 4 << 20
_STRETCH_GROWTH = 4
_NO_GROUP = "penstock.reader"
"""The client wants the name of a group; nothing is ever committed to it."""


class ReadOptions(TypedDict, total=False):
    """The options of a read; their meaning and defaults are in :meth:`LogReader.batches`."""

    start: Start
    end: End | None
    partitions: Sequence[int] | None
    follow: bool
    committed: bool
    stop: threading.Event | None
    when_trimmed: WhenTrimmed


class LogReader:
    """Reads topics without a consumer group: it leaves no position behind.

    Memory is bounded by 16 MiB of records fetched ahead. Order holds within a partition; the
    partitions come interleaved.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._admin = Admin(connection)
        self._topics = Topics(connection)

    def read(self, topic: str, **options: Unpack[ReadOptions]) -> Iterator[LogRecord]:
        """Return the records of a range one by one; the options are those of :meth:`batches`."""
        return _records(self.batches(topic, **options))

    def batches(
        self,
        topic: str,
        *,
        start: Start = EARLIEST,
        end: End | None = None,
        partitions: Sequence[int] | None = None,
        follow: bool = False,
        committed: bool = True,
        stop: threading.Event | None = None,
        when_trimmed: WhenTrimmed = "stop",
        waits: bool = True,
    ) -> Iterator[Sequence[RawRecord]]:
        """Return the records of the range as the client gives them, many at a time.

        The range is settled by the call, not when the first batch is asked for. Without ``end`` it
        ends where the log ends now, or never with ``follow``; an ``end`` that the log has not
        reached yet is waited for with ``follow`` and cut off without. ``committed`` leaves out
        aborted and unfinished transactions. ``stop``, once set, ends the iteration within a tenth
        of a second. Without ``waits`` a batch is empty where nothing more has come yet.

        Fails with ConfigurationError ``topic.missing``, ``offset.trimmed`` (an offset that
        retention has deleted, unless ``when_trimmed`` is ``skip``) or ``offset.beyond-end``, and
        with TransientError when a finite range makes no progress within the request timeout.
        """
        ends = chosen(topic, self._topics.ends(topic, committed=committed), partitions)
        first = self._starts(topic, start, ends, committed=committed)
        last = stops(self._topics, topic, end=end, ends=ends, follow=follow)
        spans = {(topic, number): Span(at, last[number]) for number, at in first.items()}
        spans = {partition: span for partition, span in spans.items() if not span.empty}
        if when_trimmed == "stop":
            for (_, number), span in spans.items():
                if span.start < ends[number][0]:
                    raise trimmed((topic, number), wanted=span.start, low=ends[number][0])
        config = self._config(committed=committed, when_trimmed=when_trimmed)
        patience = None if follow else self._admin.timeout
        return self._drain(config, spans, stop or threading.Event(), patience, waits=waits)

    def _drain(
        self,
        config: dict[str, Any],
        spans: dict[Partition, Span],
        stop: threading.Event,
        patience: float | None,
        *,
        waits: bool = True,
    ) -> Iterator[list[RawRecord]]:
        if spans:
            with closing(confluent_kafka.Consumer(config, logger=LOG)) as client:
                yield from self._poll(client, spans, stop, patience, waits=waits)

    def _poll(
        self,
        client: confluent_kafka.Consumer,
        spans: dict[Partition, Span],
        stop: threading.Event,
        patience: float | None,
        *,
        waits: bool,
    ) -> Iterator[list[RawRecord]]:
        client.assign(topic_partitions({at: span.start for at, span in spans.items()}))
        progress_at = time.monotonic()
        while spans and not stop.is_set():
            messages = take(client, count=_BATCH, timeout=_POLL_SECONDS if waits else 0)
            inside, ended = self._sort(messages, spans)
            if inside or not waits:
                yield cast("list[RawRecord]", inside)
            if messages:
                progress_at = time.monotonic()
            elif patience is not None and time.monotonic() - progress_at > patience:
                raise self._stuck(spans)
            if ended:
                for partition in ended:
                    del spans[partition]
                client.incremental_unassign([TopicPartition(*partition) for partition in ended])

    def _sort(
        self, messages: list[Message], spans: Mapping[Partition, Span]
    ) -> tuple[list[Message], set[Partition]]:
        """Return the records inside their spans, and the partitions whose end is reached."""
        inside, ended = [], set[Partition]()
        for message in messages:
            partition = (message.topic() or "", message.partition() or 0)
            span = spans.get(partition)
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise self._failure(message, error)
            if span is None:
                continue
            # At the end of a partition the client says which offset comes next; a record at the
            # end of the span is the first one outside.
            offset = message.offset() or 0
            if error is None and (span.end is None or offset < span.end):
                inside.append(message)
                offset += 1
            if span.end is not None and offset >= span.end:
                ended.add(partition)
        return inside, ended

    def _starts(self, topic: str, start: Start, ends: Ends, *, committed: bool) -> dict[int, int]:
        if not isinstance(start, Last):
            return starts(self._topics, topic, start=start, ends=ends)
        return {
            number: self._last(topic, number, start.count, ends[number], committed=committed)
            for number in ends
        }

    def _last(
        self, topic: str, number: int, count: int, ends: tuple[int, int], *, committed: bool
    ) -> int:
        """Return the offset of the ``count``-th record before the end.

        Offsets are not records: the stretch looked at grows until it holds enough of them.
        """
        low, high = ends
        config = self._config(committed=committed, when_trimmed="skip")
        stretch = count
        while count:
            start = max(low, high - stretch)
            spans = {(topic, number): Span(start, high)} if start < high else {}
            seen: deque[int] = deque(maxlen=count)
            for batch in self._drain(config, spans, threading.Event(), self._admin.timeout):
                seen.extend(record.offset() or 0 for record in batch)
            if len(seen) == count:
                return seen[0]
            if start == low:
                return low
            stretch *= _STRETCH_GROWTH
        return high

    def _config(self, *, committed: bool, when_trimmed: WhenTrimmed) -> dict[str, Any]:
        return {
            **self._connection.client_config(),
            "group.id": _NO_GROUP,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "auto.offset.reset": "error" if when_trimmed == "stop" else "earliest",
            "queued.max.messages.kbytes": _QUEUED_KBYTES,
            "fetch.message.max.bytes": _PARTITION_FETCH_BYTES,
            "fetch.wait.max.ms": round(_POLL_SECONDS * 1000),
            "fetch.queue.backoff.ms": 10,
        }

    def _failure(self, message: Message, error: KafkaError) -> PenstockError:
        partition = (message.topic() or "", message.partition() or 0)
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            low, high = self._admin.ends([partition])[partition]
            wanted = message.offset() or 0
            if wanted < low:
                return trimmed(partition, wanted=wanted, low=low)
            return beyond_end(partition, wanted=wanted, high=high)
        return self._admin.failure(error, doing=f"reading {partition[0]}[{partition[1]}]")

    def _stuck(self, spans: Mapping[Partition, Span]) -> PenstockError:
        return unreachable(
            doing="reading " + ", ".join(f"{topic}[{number}]" for topic, number in sorted(spans)),
            bootstrap=self._connection.bootstrap,
            reason=f"no progress within {self._admin.timeout:g}s",
        )


def _records(batches: Iterator[Sequence[RawRecord]]) -> Iterator[LogRecord]:
    for batch in batches:
        yield from map(log_record, batch)
