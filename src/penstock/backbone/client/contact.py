"""What every Kafka client of ours shares: its log, its waits, and whether it has contact.

The client library writes its log to standard error unless told otherwise; here it goes to the
logger ``penstock.kafka``, which is silent until a program configures logging, and seldom says the
same thing again.
"""
# ruff: noqa: SLF001 - the client's own error names begin with an underscore

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

from penstock.backbone.client.quietlog import Seldom

__all__ = ["LOG", "Contact", "Source", "take", "within"]

LOG = logging.getLogger("penstock.kafka")
LOG.addHandler(logging.NullHandler())
LOG.addFilter(Seldom())

_LOST = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
    }
)
_PROBE_INTERVAL = 1.0
_PROBE_TIMEOUT = 0.5

M = TypeVar("M")
T = TypeVar("T")


class Source(Protocol[M]):
    """The two calls of a consumer that give messages."""

    def poll(self, timeout: float = ...) -> M | None:
        """Wait for one message."""

    def consume(self, num_messages: int = ..., timeout: float = ...) -> list[M]:
        """Wait until that many messages have come or the time is over."""


def take(source: Source[M], *, count: int, timeout: float) -> list[M]:
    """Return up to ``count`` messages as soon as there is one, none after ``timeout`` seconds.

    The client's own ``consume`` waits for the full count or the full time, which would put the
    timeout on top of every record's latency when the stream is slow.
    """
    if messages := source.consume(count, 0):
        return messages
    first = source.poll(timeout)
    if first is None:
        return []
    return [first, *source.consume(count - 1, 0)] if count > 1 else [first]


def within(call: Callable[[], T], *, timeout: float) -> T:
    """Return the result of a call, or raise TimeoutError and abandon the call.

    This is for the few calls of the client without a time-out. They run in a thread that does not
    keep the process alive.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True, name="penstock-kafka-call").start()
    return outcome.result(timeout)


class _Asked(Protocol):
    def list_topics(self, topic: str | None = ..., timeout: float = ...) -> Any: ...


class Contact:
    """Whether a client reaches its cluster, and since when not.

    The client reports the loss, on its own, but never the recovery: while contact is lost,
    :meth:`trouble` asks the cluster itself, at most once a second and half a second long.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._trouble: str | None = None
        self._probe_due = 0.0

    def lost(self, error: KafkaError) -> None:
        """Take note of an error that the client reports (its ``error_cb``)."""
        LOG.warning("%s: %s", self._bootstrap, error.str())
        if self._trouble is None and (error.code() in _LOST or error.fatal()):
            since = datetime.now(UTC).isoformat(timespec="seconds")
            self._trouble = f"no contact with Kafka at {self._bootstrap} since {since}"

    def kept(self) -> None:
        """Take note that the cluster answered."""
        self._trouble = None

    def trouble(self, client: _Asked) -> str | None:
        """Return what is wrong, None while there is contact."""
        if self._trouble is not None and time.monotonic() >= self._probe_due:
            try:
                client.list_topics(timeout=_PROBE_TIMEOUT)
            except KafkaException:
                self._probe_due = time.monotonic() + _PROBE_INTERVAL
            else:
                self.kept()
        return self._trouble
