"""Write records and move positions in transactions: all of it happens, or none.

The Kafka client cannot tell what became of a transaction call that timed out. Such a producer is
dead: it is never used again, its user makes a new one with the same id (which ends whatever the
old one left open) and starts again from the last committed position.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import Literal, Self

from confluent_kafka import KafkaError, KafkaException, Message

from penstock.backbone.client.admin import topic_partitions
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.failures import cause, failure
from penstock.backbone.client.logrecord import Headers, Offsets
from penstock.backbone.log.positions import ConsumerGroup, memberless
from penstock.backbone.log.sending import Sender, SendLimits
from penstock.core.topic import Partitioning
from penstock.errors import (
    ConfigurationError,
    FencedError,
    PenstockError,
    TransientError,
)

__all__ = ["DEFAULT_TRANSACTION_TIMEOUT", "TransactionalProducer"]

DEFAULT_TRANSACTION_TIMEOUT = timedelta(seconds=10)
"""How long a killed worker's transaction may hold back readers of committed records."""

_RETRY_MS = 4
"""After how long a call is tried again, then after twice as long each time, a second at most.

A transaction that begins while the cluster still writes the marks of the one before is told to try
again. That is over within milliseconds; the client's own 100 ms would be most of a commit.
"""
_FAILED_BEFORE = KafkaError._STATE  # noqa: SLF001 - the client's own name begins so


class TransactionalProducer:
    """One producer for one transactional id; making it ends and fences every earlier one.

    - FencedError: a later producer with this id exists, or the client gave up. Stop.
    - DataError, ConfigurationError: a record or the offsets are not taken; it was aborted.
    - TransientError: it was aborted, or its result is not known.

    One that ``tells`` says where each record stands, before its transaction is decided.

    After any error ask ``dead``: a dead producer cannot be used again, make a new one and start
    from the last committed position; one that is not can begin the next transaction.
    """

    def __init__(
        self,
        connection: Connection,
        transactional_id: str,
        *,
        timeout: timedelta = DEFAULT_TRANSACTION_TIMEOUT,
        limits: SendLimits | None = None,
        tells: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self._bootstrap = connection.bootstrap
        self._timeout = connection.settings.request_timeout.total_seconds()
        self._state: Literal["ready", "open", "dead"] = "ready"
        milliseconds = timeout // timedelta(milliseconds=1)
        self._sender = Sender(
            connection,
            limits=limits or SendLimits(),
            config={
                "transactional.id": transactional_id,
                "transaction.timeout.ms": milliseconds,
                "delivery.report.only.error": not tells,
                "message.timeout.ms": milliseconds,
                # The client wants no request to outlive its transaction.
                "socket.timeout.ms": min(milliseconds, round(self._timeout * 1000)),
                # A client that starts over keeps a dead handle to its coordinator, and its calls
                # wait on that for ever; this one is replaced after the first that times out.
                "metadata.recovery.strategy": "none",
                "retry.backoff.ms": _RETRY_MS,
            },
        )
        with self._ending("take over"):
            self._sender.client.init_transactions(self._timeout)

    @property
    def dead(self) -> bool:
        """Whether this producer must not be used again."""
        return self._state == "dead"

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._state == "open"

    def begin(self) -> None:
        """Begin a transaction."""
        self._require("ready")
        with self._ending("begin"):
            self._sender.client.begin_transaction()
        self._state = "open"

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
        """Queue one record of the transaction; see :meth:`Producer.send`.

        A record that the client refuses at once (DataError) leaves the transaction open.
        """
        if self._state != "open":
            self._require("open")
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
            raise self._ended(cause(error), doing=f"send in {self.transactional_id!r}") from error

    def place(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes,
        headers: Headers = (),
        partition: int | None = None,
    ) -> list[int]:
        """Queue one record; its partition and offset are in the list once :meth:`settle` returns.

        For a producer that ``tells``.
        """
        self._require("open")
        stands: list[int] = []
        report = self._sender.deliveries.report

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            report(error, message)
            if error is None:
                stands.extend((message.partition() or 0, message.offset() or 0))

        try:
            self._sender.send(
                topic,
                key=key,
                value=value,
                headers=headers,
                partition=partition,
                timestamp_at=None,
                on_delivery=on_delivery,
            )
        except KafkaException as error:
            raise self._ended(cause(error), doing=f"send in {self.transactional_id!r}") from error
        return stands

    def settle(self) -> None:
        """Wait until every record of the transaction stands on the log, or raise why not.

        Readers see them only when it is committed.
        """
        self._require("open")
        with self._ending("write"):
            waiting = self._sender.flush(self._timeout)
        undelivered = self._sender.deliveries.failure()
        if undelivered is not None or waiting:
            self._die()
            raise undelivered or TransientError(
                f"{waiting} records are still not acknowledged by Kafka at {self._bootstrap}",
                code="kafka.undelivered",
                hint="penstock doctor",
            )

    def send_all(self, topic: str, pairs: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Queue records of the transaction, keys and values, at half the cost of :meth:`send`."""
        self._require("open")
        try:
            self._sender.send_all(topic, pairs)
        except KafkaException as error:
            raise self._ended(cause(error), doing=f"send in {self.transactional_id!r}") from error

    def commit(
        self, offsets: Offsets | None = None, *, group: ConsumerGroup | str | None = None
    ) -> None:
        """Make the records visible and the offsets those of the group, or neither.

        It is decided when this returns; readers of committed records see it a moment later.

        ``group`` is a consumer's own (``Consumer.group``) or the name of one without members, a
        position's (``position_group(name)``).
        """
        self._require("open")
        if offsets:
            if group is None:
                raise ValueError("offsets are committed for a group")
            metadata = (memberless(group) if isinstance(group, str) else group).metadata
            with self._ending("commit offsets of"):
                self._sender.client.send_offsets_to_transaction(
                    topic_partitions(offsets), metadata, self._timeout
                )
        with self._ending("commit"):
            self._sender.client.commit_transaction(self._timeout)
        self._state = "ready"

    def abort(self) -> None:
        """Undo the transaction; nothing happens if there is none."""
        if self._state == "open":
            self._abort()

    def trouble(self) -> str | None:
        """Return why the cluster cannot be reached, None if it can."""
        return self._sender.trouble()

    def close(self) -> None:
        """Abort what is open, unless the producer is dead; it cannot be used afterwards."""
        try:
            self.abort()
        finally:
            self._die()

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
            # The next producer with this id ends what is open; an abort could hide the error.
            self._die()

    def _require(self, state: Literal["ready", "open"]) -> None:
        if self._state == "dead":
            raise TransientError(
                f"the producer {self.transactional_id!r} has ended; create a new one",
                code="transaction.dead",
            )
        if self._state != state:
            raise RuntimeError(
                "a transaction is open" if self._state == "open" else "no transaction is open"
            )

    @contextmanager
    def _ending(self, doing: str) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise self._ended(cause(error), doing=f"{doing} {self.transactional_id!r}") from error

    def _ended(self, error: KafkaError, *, doing: str) -> PenstockError:
        """Put the producer into the state that the error leaves, and return the error to raise."""
        undelivered = self._sender.deliveries.failure()
        named = failure(error, doing=doing, bootstrap=self._bootstrap)
        if error.fatal() or isinstance(named, FencedError):
            self._die()
            lasting = isinstance(named, FencedError | ConfigurationError)
            return named if lasting else _as(FencedError, named, code="transaction.fatal")
        if self._state == "open" and (error.txn_requires_abort() or error.code() == _FAILED_BEFORE):
            self._abort()
            if undelivered is not None:
                # The client has lost count of its records: its next transaction would fail.
                self._die()
                return undelivered
            known = isinstance(named, ConfigurationError | TransientError)
            return named if known else _as(TransientError, named, code="transaction.aborted")
        self._die()
        lasting = isinstance(named, ConfigurationError)
        return named if lasting else _as(TransientError, named, code="transaction.unknown")

    def _abort(self) -> None:
        try:
            self._sender.client.abort_transaction(self._timeout)
        except KafkaException as error:
            self._die()
            named = failure(
                cause(error), doing=f"abort {self.transactional_id!r}", bootstrap=self._bootstrap
            )
            if isinstance(named, FencedError):
                raise named from error
            raise _as(TransientError, named, code="transaction.unknown") from error
        self._state = "ready"
        self._sender.deliveries.failure()

    def _die(self) -> None:
        if self._state != "dead":
            self._state = "dead"
            self._sender.discard()


def _as(
    family: type[FencedError | TransientError], named: PenstockError, *, code: str
) -> PenstockError:
    return family(named.message, code=code, detail=named.detail, hint=named.hint)
