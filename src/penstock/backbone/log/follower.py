"""Follows a topic for as long as one likes, and knows whether it is at the end.

What :class:`LogReader` does not tell: the end of a partition may hold no record, and somebody who
keeps a copy of a table has to say how old that is.
"""
# ruff: noqa: SLF001 - the client's own error names begin with an underscore

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from penstock.backbone.client.admin import Admin
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.contact import LOG, Contact, take
from penstock.backbone.client.failures import cause, failure
from penstock.backbone.client.logrecord import RawRecord
from penstock.core.backoff import Backoff
from penstock.errors import PenstockError, TransientError

__all__ = ["Follower", "attempts"]

_BATCH = 2000
_ANSWER_SECONDS = 10.0
_FETCH_WAIT_MS = 50
_QUEUED_KBYTES = 16 << 10
_PARTITION_FETCH_BYTES = 4 << 20
_BACKOFF = Backoff(timedelta(milliseconds=200), timedelta(seconds=5))


def attempts(stop: threading.Event) -> Iterator[None]:
    """Yield for each attempt to follow a topic until it is told to stop, and wait between them."""
    delays = _BACKOFF.delays()
    while not stop.is_set():
        began = time.monotonic()
        yield
        if _BACKOFF.is_over(time.monotonic() - began):
            delays = _BACKOFF.delays()
        stop.wait(next(delays))


class Follower:
    """Reads all partitions of a topic, from their beginning or from ``starts`` on.

    ``from_end``: from behind the last record of now. Committed records only. Not for several
    threads at once.
    PenstockError where the topic cannot be read; close it then and begin anew.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        starts: Mapping[int, int] | None = None,
        from_end: bool = False,
    ) -> None:
        self._bootstrap = connection.bootstrap
        self._topic = topic
        self._contact = Contact(connection.bootstrap)
        numbers = range(len(Admin(connection).topics().get(topic, ())))
        if not numbers:
            raise TransientError(f"there is no topic {topic}", code="topic.missing")
        self.positions: dict[int, int] = dict.fromkeys(numbers, 0)
        """For each partition the next offset: everything before it was given."""
        self._at_end = dict.fromkeys(numbers, False)
        self._client = confluent_kafka.Consumer(_config(connection, self._contact), logger=LOG)
        self._current_at: float | None = None
        try:
            first = self._ends(numbers) if from_end else starts or {}
            self.positions = {each: first.get(each, 0) for each in numbers}
            self._client.assign(
                [TopicPartition(topic, each, first.get(each, OFFSET_BEGINNING)) for each in numbers]
            )
        except BaseException:
            self.close()
            raise

    def take(self, timeout: float) -> Sequence[RawRecord]:
        """Return records as soon as there are any; none after so many seconds."""
        try:
            messages = take(self._client, count=_BATCH, timeout=timeout)
        except KafkaException as error:
            raise self._failed(cause(error)) from error
        records = []
        for message in messages:
            number, offset, wrong = message.partition() or 0, message.offset() or 0, message.error()
            if wrong is None:
                records.append(message)
                self._at_end[number] = False
                self.positions[number] = offset + 1
            elif wrong.code() == KafkaError._PARTITION_EOF:
                self._at_end[number] = True
                self.positions[number] = offset
            else:
                raise self._failed(wrong)
        if messages:
            self._contact.kept()
        if all(self._at_end.values()) and self._contact.trouble(self._client) is None:
            self._current_at = time.monotonic()
        return cast("Sequence[RawRecord]", records)

    @property
    def current_at(self) -> float | None:
        """When it was last known to have everything, on the monotonic clock; None: it never was."""
        return self._current_at

    @property
    def stale_seconds(self) -> float | None:
        """How long ago it was known to have everything; None: it never was."""
        return None if self._current_at is None else max(0.0, time.monotonic() - self._current_at)

    def trouble(self) -> str | None:
        """Return why the cluster cannot be reached, None if it can."""
        return self._contact.trouble(self._client)

    def close(self) -> None:
        """End."""
        with suppress(KafkaException, RuntimeError):
            self._client.close()

    def _ends(self, numbers: Iterable[int]) -> dict[int, int]:
        """Return the offsets behind the last records: fixed now, not when it first reads."""
        try:
            return {
                each: self._client.get_watermark_offsets(
                    TopicPartition(self._topic, each), timeout=_ANSWER_SECONDS, cached=False
                )[1]
                for each in numbers
            }
        except KafkaException as error:
            raise self._failed(cause(error)) from error

    def _failed(self, error: KafkaError) -> PenstockError:
        return failure(error, doing=f"following {self._topic}", bootstrap=self._bootstrap)


def _config(connection: Connection, contact: Contact) -> dict[str, Any]:
    return {
        **connection.client_config(),
        "group.id": "penstock.follower",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "queued.max.messages.kbytes": _QUEUED_KBYTES,
        "fetch.message.max.bytes": _PARTITION_FETCH_BYTES,
        "fetch.wait.max.ms": _FETCH_WAIT_MS,
        "error_cb": contact.lost,
    }
