"""Writes records and tells of each where it stands on the log, for a sender who must not wait.

The producer for gateways: `send` never blocks, and neither does `serve`, in which the sender hears
what became of records. It has no thread of its own: two threads that take turns at the interpreter
for each record cost more than all the rest of its way.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.failures import cause, failure
from penstock.backbone.client.logrecord import Headers
from penstock.backbone.log.sending import Sender, SendLimits
from penstock.errors import DataError, PenstockError, TransientError

__all__ = ["AcknowledgingProducer", "Sendable", "Sending", "Stand"]


class Stand(msgspec.Struct, frozen=True, gc=False):
    """Where a record stands on the log; made for every record, so it must be cheap to make."""

    partition: int
    offset: int


class Sendable(Protocol):
    """A record on its way."""

    @property
    def key(self) -> bytes | None:
        """Its key, which decides its partition."""

    @property
    def value(self) -> bytes:
        """Its value."""

    @property
    def headers(self) -> Headers:
        """Its headers."""


class Sending:
    """What becomes of records that are sent together: ``outcomes``, in their order.

    ``complete`` is called once, when all of them were heard of.
    """

    __slots__ = ("_complete", "_heard", "_queued", "failed", "outcomes")

    def __init__(self, outcomes: list[Any], complete: Callable[[], None]) -> None:
        self.outcomes = outcomes
        """For each record a Stand, or the error that says why nobody knows; or what was there."""
        self.failed = False
        """Whether any of them was not taken, or is not known to be on the log."""
        self._complete = complete
        self._heard = 0
        self._queued = -1

    def told(self, at: int, outcome: Stand | PenstockError) -> None:
        """Take what became of a record that went to the client."""
        self.outcomes[at] = outcome
        self._heard = heard = self._heard + 1
        if heard == self._queued:
            self._complete()

    def refused(self, at: int, error: PenstockError) -> None:
        """Take why a record did not go to the client."""
        self.outcomes[at] = error
        self.failed = True

    def queued(self, count: int) -> None:
        """Hear how many went to the client."""
        self._queued = count
        if self._heard == count:
            self._complete()


class AcknowledgingProducer:
    """An idempotent producer that tells of each record, when it is served.

    When the cluster is away, a record is given up after ``limits.delivery_timeout``: nobody knows
    then whether it was written. ``dead``: the client has failed as a whole; make a new one.
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
        self._poll = self._sender.client.poll
        self._turn = threading.Lock()
        self.dead = False

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
        records: Sequence[tuple[int, Sendable]],
        sending: Sending,
        *,
        partitions: Iterator[int] | None = None,
    ) -> int:
        """Queue records under their numbers in a sending; return how many went to the client.

        Without ``partitions``, their keys decide. The outcome of one that the client does not take
        is a DataError, or a TransientError ``kafka.queue-full``: there is no room.
        """
        produce, hear, sent = self._produce, self._hear, 0
        for at, record in records:
            more: dict[str, Any] = {"headers": [*record.headers]} if record.headers else {}
            try:
                produce(
                    topic,
                    record.value,
                    record.key,
                    -1 if partitions is None else next(partitions),
                    partial(hear, sending, at),
                    **more,
                )
                sent += 1
            except BufferError:
                sending.refused(at, _full())
            except KafkaException as error:
                sending.refused(at, self._named(cause(error), topic, len(record.value)))
        sending.queued(sent)
        return sent

    def serve(self) -> None:
        """Tell what became of records meanwhile; to be called often while any are on their way."""
        if not self._turn.acquire(blocking=False):
            return  # it is being closed
        try:
            self._poll(0)
        except KafkaException:
            self.dead = True
        finally:
            self._turn.release()

    def trouble(self) -> str | None:
        """Return why the cluster cannot be reached, None if it can; it may ask for a moment."""
        return self._sender.trouble()

    def close(self, timeout: timedelta) -> None:
        """Wait for what was sent, then end; what was not acknowledged is told as not known."""
        with self._turn, suppress(KafkaException):
            self._sender.flush(timeout.total_seconds())
        self._sender.client.purge()
        self.serve()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(timedelta())

    def _hear(self, sending: Sending, at: int, error: KafkaError | None, message: Message) -> None:
        if error is None:
            sending.told(at, Stand(message.partition() or 0, message.offset() or 0))
            return
        if error.fatal():
            self.dead = True
        sending.failed = True
        size = len(message.value() or b"")
        sending.told(at, self._named(error, message.topic() or "", size))

    def _named(self, error: KafkaError, topic: str, size: int) -> PenstockError:
        doing = f"sending {size} bytes to {topic}"
        named = failure(error, doing=doing, bootstrap=self._bootstrap)
        if isinstance(named, DataError | TransientError):
            return named
        return TransientError(named.message, code=named.code, detail=named.detail, hint=named.hint)


def _full() -> TransientError:
    return TransientError(
        "too many records wait for Kafka", code="kafka.queue-full", hint="penstock doctor"
    )
