"""How the work of a task becomes durable on Kafka: the three promises a service can make."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import Offsets, Partition
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.positions import ConsumerGroup
from penstock.backbone.log.producer import Producer, SendLimits
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.errors import PenstockError, TransientError
from penstock.services.step.outputs import Send

__all__ = ["AtLeastOnce", "AtMostOnce", "ExactlyOnce"]


class ExactlyOnce:
    """Outputs, changelog, dead letters and offsets of one commit, in one transaction.

    Making it ends what an earlier owner of the same id left open, and that owner's every further
    attempt fails. The group's metadata keeps out a worker that has lost its partitions.

    ``timeout`` is how long the transaction of a worker that died may hold back readers. It should
    be longer than a broker takes to start: one that finds a transaction expired while it is coming
    up ends it before its partitions have a leader, and leaves out the mark that says so (seen with
    Kafka 4.3).
    """

    def __init__(
        self,
        connection: Connection,
        *,
        transactional_id: str,
        group: Callable[[], ConsumerGroup],
        limits: SendLimits,
        timeout: timedelta,
    ) -> None:
        self._group = group
        self._stuck = False
        # The calls have timeouts of their own; this is for those that do not keep them.
        self._patience = 3 * connection.settings.request_timeout.total_seconds()
        self._producer = TransactionalProducer(
            connection, transactional_id, timeout=timeout, limits=limits
        )

    @property
    def send(self) -> Send:
        """Return what sends a record within the transaction."""
        return self._producer.send

    @property
    def keep(self) -> Send:
        """Return what takes the changelog: it is part of the transaction."""
        return self._producer.send

    def begin(self) -> None:
        """Begin a transaction."""
        self._producer.begin()

    def take(self, offsets: Offsets) -> bool:  # noqa: ARG002 - they are committed with the work
        """Return False: offsets are committed with the work, not before it."""
        return False

    def commit(self, offsets: Offsets) -> Callable[[], None]:
        """Begin to commit the transaction with these offsets of the group."""
        group = self._group()
        return self._started(lambda: self._producer.commit(offsets, group=group))

    @property
    def in_doubt(self) -> bool:
        """Return whether nobody knows what became of the last transaction."""
        return self._stuck or self._producer.dead

    def mark(self, topic: str, *, key: bytes, value: bytes, partition: int) -> None:
        """Write one record in a transaction of its own."""
        self._producer.begin()
        self._producer.send(topic, key=key, value=value, partition=partition)
        self._started(self._producer.commit)()

    def close(self) -> None:
        """Abort what is open, if the cluster can be reached; else the next owner will."""
        if not self._stuck and self._producer.trouble() is None:
            with suppress(PenstockError):  # nothing depends on it: the next owner aborts it too
                self._producer.close()

    def _started(self, commit: Callable[[], None]) -> Callable[[], None]:
        """Run a commit in a thread, so that several can be waited for at once.

        Also so that it can be given up: librdkafka 2.16 may wait for ever, whatever its timeout,
        when the broker dies while offsets are being sent.
        """
        outcome: Future[None] = Future()

        def run() -> None:
            try:
                commit()
                outcome.set_result(None)
            except Exception as error:  # noqa: BLE001 - whatever it is, who waits gets it
                outcome.set_exception(error)

        def wait() -> None:
            try:
                outcome.result(self._patience)
            except TimeoutError as error:
                self._stuck = True
                raise TransientError(
                    f"committing {self._producer.transactional_id!r}: the client does not return",
                    code="transaction.unknown",
                    detail=f"no answer within {self._patience:g}s",
                ) from error

        threading.Thread(target=run, daemon=True, name="penstock-commit").start()
        return wait


class AtLeastOnce:
    """Outputs first, then the offsets: what a crash leaves between the two is done again."""

    def __init__(
        self,
        connection: Connection,
        *,
        consumer: Callable[[], Consumer],
        limits: SendLimits,
    ) -> None:
        self._consumer = consumer
        self._producer = Producer(connection, limits=limits)

    @property
    def send(self) -> Send:
        """Return what sends a record."""
        return self._producer.send

    @property
    def keep(self) -> Send:
        """Return what takes the changelog; services with state use what fences it."""
        return self._producer.send

    def begin(self) -> None:
        """Do nothing: records go out as they come."""

    def take(self, offsets: Offsets) -> bool:  # noqa: ARG002 - they are committed after the work
        """Return False: offsets are committed after the work, not before it."""
        return False

    def commit(self, offsets: Offsets) -> Callable[[], None]:
        """Wait until everything sent has arrived, then move the group."""
        self._producer.flush()
        self._consumer().commit(offsets)
        return lambda: None

    @property
    def in_doubt(self) -> bool:
        """Return False: where the offsets did not move for certain, doing it again is allowed."""
        return False

    def mark(self, topic: str, *, key: bytes, value: bytes, partition: int) -> None:
        """Write one record and wait until it has arrived."""
        self._producer.send(topic, key=key, value=value, partition=partition)
        self._producer.flush()

    def close(self) -> None:
        """Send what waits, if the cluster can be reached; else it is made again."""
        if self._producer.trouble() is None:
            with suppress(PenstockError):  # nothing depends on it: offsets were not committed
                self._producer.close()


class AtMostOnce(AtLeastOnce):
    """The offsets first, then the work: what a crash leaves undone is never done.

    Outputs that could not be delivered are given up; state keeps what its last commit had. What is
    left for later without a crash (a record to be tried again, and those behind it) is given back
    with the next commit.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        consumer: Callable[[], Consumer],
        limits: SendLimits,
    ) -> None:
        super().__init__(connection, consumer=consumer, limits=limits)
        self._taken: dict[Partition, int] = {}

    def take(self, offsets: Offsets) -> bool:
        """Move the group past the records before they are handled."""
        self._move({at: end for at, end in offsets.items() if end > self._taken.get(at, -1)})
        return True

    def commit(self, offsets: Offsets) -> Callable[[], None]:
        """Wait until what was sent has arrived; move the group past what holds no records.

        It goes back to records that were taken and left for later: nobody has them done.
        """
        self._producer.flush()
        self._move({at: end for at, end in offsets.items() if end != self._taken.get(at)})
        return lambda: None

    def _move(self, offsets: Offsets) -> None:
        if offsets:
            self._consumer().commit(offsets)
            self._taken |= offsets
