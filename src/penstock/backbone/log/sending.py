"""Pass records to the Kafka client: bounded, idempotent, with every failed delivery kept.

Shared by the producer and the transactional producer; they decide what a failure means.
"""

# ruff: noqa: SLF001 - the client's own error names begin with an underscore

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.contact import LOG, Contact
from penstock.backbone.client.failures import cause, failure
from penstock.backbone.client.logrecord import Headers
from penstock.backbone.log.letters import Letter, fitted, is_letter
from penstock.backbone.log.roundrobin import RoundRobin
from penstock.core.topic import Partitioning
from penstock.errors import ConfigurationError, DataError, PenstockError, TransientError

__all__ = ["Deliveries", "OnDelivery", "SendLimits", "Sender"]

OnDelivery = Callable[[KafkaError | None, Message], None]
"""Hears what became of one record (the client's ``on_delivery``)."""

_BY_KEY = -1
_SERVE_SECONDS = 0.01
"""How long delivery reports may lie unread while records are being sent."""
_WAIT_SECONDS = 0.05
_KEPT_FAILURES = 20
_SHOWN_FAILURES = 3
_SHOWN_KEY_BYTES = 60
_HASTENINGS = 2
"""The first answer names the brokers, the second comes from one of them."""
_HASTEN_SECONDS = 0.25
_PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLimits:
    """How many records may wait to be sent, and for how long."""

    records: int = 100_000
    queued_bytes: int = 64 << 20
    linger: timedelta = timedelta(milliseconds=2)
    delivery_timeout: timedelta = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class _Undelivered:
    error: KafkaError
    topic: str
    key: bytes | None
    size: int

    def failure(self, bootstrap: str) -> PenstockError:
        key = "without a key" if self.key is None else f"with key {_shown(self.key)}"
        doing = f"sending {self.size} bytes to {self.topic} {key}"
        return failure(self.error, doing=doing, bootstrap=bootstrap)


class Deliveries:
    """Keeps the first failed deliveries and counts the others."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._kept: list[_Undelivered] = []
        self._count = 0

    @property
    def failed(self) -> bool:
        """Whether a record was not delivered."""
        return bool(self._kept)

    def report(self, error: KafkaError | None, message: Message) -> None:
        """Record one delivery (the client's ``on_delivery``)."""
        if error is None or error.code() in _PURGED:
            return
        self._count += 1
        if len(self._kept) < _KEPT_FAILURES:
            size = len(message.value() or b"")
            self._kept.append(_Undelivered(error, message.topic() or "", message.key(), size))

    def failure(self) -> PenstockError | None:
        """Return, once, what became of the records that were not delivered; None: all were.

        Where several kinds of failure came together the one that stops a worker is returned, not
        the one that condemns a record; the others are in its detail.
        """
        if not self._kept:
            return None
        failures = [undelivered.failure(self._bootstrap) for undelivered in self._kept]
        worst = min(failures, key=lambda error: isinstance(error, DataError))
        others = [error.message for error in failures if error is not worst][:_SHOWN_FAILURES]
        rest = self._count - 1 - len(others)
        lines = [worst.detail, *others, *([f"and {rest} more records"] if rest > 0 else [])]
        worst.detail = "\n  ".join(line for line in lines if line)
        self._kept.clear()
        self._count = 0
        return worst


class Sender:
    """One client that sends. Not for several threads at once.

    Nothing that the client calls refers back to it: the client, with its threads and connections,
    ends as soon as the sender is let go.
    """

    def __init__(
        self, connection: Connection, *, limits: SendLimits, config: Mapping[str, Any]
    ) -> None:
        self._bootstrap = connection.bootstrap
        self._timeout = connection.settings.request_timeout.total_seconds()
        self._most = connection.settings.max_message_bytes
        self._serve_at = 0.0
        self._topic: str | None = None
        self._hastened = False
        self._contact = Contact(connection.bootstrap)
        self.deliveries = Deliveries(connection.bootstrap)
        self.client = confluent_kafka.Producer(
            {
                **connection.client_config(),
                "enable.idempotence": True,
                "acks": "all",
                # The partition of a key must be the one that Java producers (Spark) choose.
                "partitioner": "murmur2_random",
                "message.max.bytes": connection.settings.max_message_bytes,
                "queue.buffering.max.messages": limits.records,
                "queue.buffering.max.kbytes": max(1, limits.queued_bytes >> 10),
                "linger.ms": limits.linger / timedelta(milliseconds=1),
                "topic.metadata.propagation.max.ms": 10_000,
                "delivery.report.only.error": True,
                "on_delivery": self.deliveries.report,
                "error_cb": self._contact.lost,
                **config,
            },
            logger=LOG,
        )
        self._produce = self.client.produce
        self._round_robin = RoundRobin(
            partial(_count_partitions, self.client, self._bootstrap, self._timeout)
        )

    def send(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        partition: int | Partitioning | None,
        timestamp_at: datetime | None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        """Queue one record; wait while the queue is full, at most the request timeout.

        A dead letter that is too large is cut until it fits: what it says must get through.

        ``on_delivery`` hears what became of it, in place of ``deliveries``.

        DataError or ConfigurationError: the record is not taken. KafkaException, from this and all
        other methods: the client as a whole has failed.
        """
        if partition is None or partition == "key":
            number = _BY_KEY
        else:
            number = self._round_robin.choose(topic) if partition == "round_robin" else partition
        milliseconds = 0 if timestamp_at is None else round(timestamp_at.timestamp() * 1000)
        if headers and is_letter(headers):
            key, value, headers = fitted(Letter(key, value, headers), self._most)
        listed = list(headers) if headers else None
        deadline = 0.0
        more: dict[str, Any] = {} if on_delivery is None else {"on_delivery": on_delivery}
        while True:
            try:
                self._produce(
                    topic, value, key, number, timestamp=milliseconds, headers=listed, **more
                )
                break
            except BufferError:
                deadline = deadline or time.monotonic() + self._timeout
                self._make_room(topic, deadline)
            except KafkaException as error:
                refused = _Undelivered(cause(error), topic, key, len(value or b""))
                named = refused.failure(self._bootstrap)
                if isinstance(named, DataError | ConfigurationError):
                    raise named from error
                raise
        if (now := time.monotonic()) >= self._serve_at:
            self._serve_at = now + _SERVE_SECONDS
            self._topic = topic
            self.client.poll(0)

    def send_all(self, topic: str, pairs: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        """Queue keys and values, the key deciding; otherwise as :meth:`send`, at half its cost."""
        produce = self._produce
        for key, value in pairs:
            try:
                produce(topic, value, key)
            except (BufferError, KafkaException):
                # Not taken: sent again, it waits for room or raises what there is to be said.
                self.send(
                    topic, key=key, value=value, headers=(), partition=None, timestamp_at=None
                )
        self.client.poll(0)

    def flush(self, timeout: float | None = None) -> int:
        """Wait until all records are delivered or have failed; return how many still wait."""
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        if self._topic is not None and not self._hastened:
            self._hasten(self._topic, deadline)
        return self.client.flush(max(0.0, deadline - time.monotonic()))

    def trouble(self) -> str | None:
        """Return why the cluster cannot be reached, None if it can."""
        return self._contact.trouble(self.client)

    def discard(self) -> None:
        """Forget all records that still wait."""
        self.client.purge()
        with suppress(KafkaException):  # a client that has failed says so once more
            self.client.poll(0)

    def _hasten(self, topic: str, deadline: float) -> None:
        """Let the first records of a new client go at once: it has no id yet to send them with.

        It asks for one every half second, and whenever a broker tells it about the cluster.
        """
        self._hastened = True
        for _ in range(_HASTENINGS):
            left = max(0.0, deadline - time.monotonic())
            with suppress(KafkaException):  # whoever waits for the records will notice
                self.client.list_topics(topic, timeout=min(_HASTEN_SECONDS, left))

    def _make_room(self, topic: str, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise TransientError(
                f"sending to {topic}: {len(self.client)} records have been waiting to be sent "
                f"to Kafka at {self._bootstrap} for {self._timeout:g}s",
                code="kafka.queue-full",
                hint="penstock doctor",
            )
        self.client.poll(_WAIT_SECONDS)


def _count_partitions(
    client: confluent_kafka.Producer, bootstrap: str, timeout: float, topic: str
) -> int:
    doing = f"counting the partitions of {topic}"
    try:
        found = client.list_topics(topic, timeout=timeout).topics[topic]
    except KafkaException as error:
        raise failure(cause(error), doing=doing, bootstrap=bootstrap) from error
    if found.error is not None:
        raise failure(found.error, doing=doing, bootstrap=bootstrap)
    return len(found.partitions)


def _shown(key: bytes) -> str:
    text = key[:_SHOWN_KEY_BYTES].decode(errors="backslashreplace")
    return repr(text + ("…" if len(key) > _SHOWN_KEY_BYTES else ""))
