"""Writes records: idempotent, acknowledged by all replicas, bounded."""

from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.failures import cause, failure
from penstock.backbone.client.logrecord import Headers
from penstock.backbone.log.sending import Sender, SendLimits
from penstock.core.topic import Partitioning
from penstock.errors import TransientError

__all__ = ["Producer", "SendLimits"]


class Producer:
    """Sends records in the background; :meth:`flush` says that all have arrived.

    A record is written once, in the order of sending within a partition, also when a request is
    repeated. What could not be delivered is raised by the next call, with topic and key: DataError
    for a record that Kafka does not take, TransientError when it cannot be reached
    (``producer.dead``: make a new one). Not for several
    threads at once. As a context manager it flushes at the end.
    """

    def __init__(self, connection: Connection, *, limits: SendLimits | None = None) -> None:
        limits = limits or SendLimits()
        self._bootstrap = connection.bootstrap
        self._sender = Sender(
            connection,
            limits=limits,
            config={"message.timeout.ms": limits.delivery_timeout // timedelta(milliseconds=1)},
        )

    def send(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        partition: int | Partitioning | None = None,
        timestamp_at: datetime | None = None,
    ) -> None:
        """Queue one record, waiting while the queue is full.

        ``partition`` is a number, or how to choose one: by key (the default: as Java clients do)
        or ``round_robin``, where the key is sent but not looked at. Retention counts from
        ``timestamp_at`` (now, if it is not given): a record older than that goes at once.
        """
        self._raise_undelivered()
        try:
            self._sender.send(
                topic,
                key=key,
                value=value,
                headers=headers,
                partition=partition,
                timestamp_at=timestamp_at,
            )
        except KafkaException as error:
            raise self._failed(error) from error

    def flush(self, timeout: timedelta | None = None) -> None:
        """Wait until every record is delivered; TransientError if the time is too short."""
        try:
            waiting = self._sender.flush(None if timeout is None else timeout.total_seconds())
        except KafkaException as error:
            raise self._failed(error) from error
        self._raise_undelivered()
        if waiting:
            raise TransientError(
                f"{waiting} records are still not acknowledged by Kafka at {self._bootstrap}",
                code="kafka.undelivered",
                hint="penstock doctor",
            )

    def trouble(self) -> str | None:
        """Return why the cluster cannot be reached, None if it can."""
        return self._sender.trouble()

    def discard(self) -> None:
        """Forget all records that still wait; nobody needs their results."""
        self._sender.discard()

    def close(self) -> None:
        """Flush, and forget what could not be sent."""
        try:
            self.flush()
        finally:
            self.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            # What was sent before the error is still wanted, but must not hide the error.
            with suppress(KafkaException):
                self._sender.flush()
            self.discard()

    def _failed(self, error: KafkaException) -> TransientError:
        named = failure(cause(error), doing="sending", bootstrap=self._bootstrap)
        return TransientError(
            "the producer has failed; create a new one",
            code="producer.dead",
            detail=named.detail,
        )

    def _raise_undelivered(self) -> None:
        if self._sender.deliveries.failed and (error := self._sender.deliveries.failure()):
            raise error
