"""Writes records and tells of each where it stands on the log, for a sender who must not wait.

The producer for gateways: `send` never blocks, and whoever sends hears of every record from a
thread of the producer's own.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.failures import cause, failure
from penstock.backbone.client.logrecord import Headers
from penstock.backbone.log.sending import Sender, SendLimits
from penstock.errors import DataError, PenstockError, TransientError

__all__ = ["AcknowledgingProducer", "Delivered"]

_SERVE_SECONDS = 0.1
"""How long the producer's thread may wait for acknowledgements before it looks whether to end."""

Delivered = Callable[[int, int, PenstockError | None], None]
"""Hears the partition and the offset of a record, or why it is not known to be on the log."""


class AcknowledgingProducer:
    """An idempotent producer that tells of each record, from a thread of its own.

    What hears of a record must be quick and must raise nothing. When the cluster is away, a record
    is given up after ``limits.delivery_timeout``: nobody knows then whether it was written.
    ``dead``: the client has failed as a whole; make a new one.
    """

    def __init__(self, connection: Connection, *, limits: SendLimits) -> None:
        self._bootstrap = connection.bootstrap
        self._sender = Sender(
            connection,
            limits=limits,
            config={
                "message.timeout.ms": limits.delivery_timeout // timedelta(milliseconds=1),
                "delivery.report.only.error": False,
            },
        )
        self._produce = self._sender.client.produce
        self._ending = threading.Event()
        self.dead = False
        self._thread = threading.Thread(target=self._serve, name="acknowledgements", daemon=True)
        self._after: Callable[[], None] = lambda: None

    def begin(self, after: Callable[[], None] = lambda: None) -> Self:
        """Begin; ``after`` is called behind each handful of records that were heard of."""
        self._after = after
        self._thread.start()
        return self

    def partitions(self, topics: Iterable[str], *, timeout: timedelta) -> Mapping[str, int]:
        """Return how many partitions topics have; TransientError: the cluster does not say."""
        found = {}
        for topic in topics:
            doing = f"counting the partitions of {topic}"
            try:
                state = self._sender.client.list_topics(topic, timeout=timeout.total_seconds())
            except KafkaException as error:
                raise failure(cause(error), doing=doing, bootstrap=self._bootstrap) from error
            found[topic] = len(state.topics[topic].partitions)
        return found

    def send(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes,
        partition: int | None,
        on_delivered: Delivered,
        headers: Headers = (),
    ) -> None:
        """Queue one record; without a partition, its key decides.

        DataError: the client does not take it. TransientError ``kafka.queue-full``: there is no
        room; the record was not taken. What becomes of it later is told.
        """
        try:
            number = -1 if partition is None else partition
            self._produce(
                topic,
                value,
                key,
                number,
                on_delivery=partial(self._delivered, on_delivered, topic, len(value)),
                headers=list(headers) if headers else None,
            )
        except BufferError:
            raise TransientError(
                "too many records wait for Kafka", code="kafka.queue-full", hint="penstock doctor"
            ) from None
        except KafkaException as error:
            raise self._named(cause(error), topic, len(value)) from error

    def trouble(self) -> str | None:
        """Return why the cluster cannot be reached, None if it can; it may ask for a moment."""
        return self._sender.trouble()

    def close(self, timeout: timedelta) -> None:
        """Wait for what was sent, then end; what was not acknowledged is told as not known."""
        with suppress(KafkaException):
            self._sender.flush(timeout.total_seconds())
        self._sender.client.purge()
        with suppress(KafkaException):
            self._sender.client.poll(0)
        self._after()
        self._ending.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(timedelta())

    def _serve(self) -> None:
        while not self._ending.is_set():
            try:
                if self._sender.client.poll(_SERVE_SECONDS):
                    self._after()
            except KafkaException:
                self.dead = True
                self._after()
                self._ending.wait(_SERVE_SECONDS)

    def _delivered(
        self,
        on_delivered: Delivered,
        topic: str,
        size: int,
        error: KafkaError | None,
        message: Message,
    ) -> None:
        if error is None:
            on_delivered(message.partition() or 0, message.offset() or 0, None)
            return
        if error.fatal():
            self.dead = True
        on_delivered(-1, -1, self._named(error, topic, size))

    def _named(self, error: KafkaError, topic: str, size: int) -> PenstockError:
        doing = f"sending {size} bytes to {topic}"
        named = failure(error, doing=doing, bootstrap=self._bootstrap)
        if isinstance(named, DataError | TransientError):
            return named
        return TransientError(named.message, code=named.code, detail=named.detail, hint=named.hint)
