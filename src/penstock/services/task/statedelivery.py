"""Delivery at least and at most once of a service with state: the changelog has one owner.

Outputs go out as they come. What the state becomes does not: a worker that slept through the loss
of its partition would write into the changelog of its successor, and compaction would keep what it
wrote. So the changelog is written in transactions, whose id the successor has taken over.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import Offsets
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.producer import Producer, SendLimits
from penstock.core.topic import Partitioning
from penstock.errors import PenstockError
from penstock.services.step.outputs import Send
from penstock.services.task.delivery import AtMostOnce, ExactlyOnce

__all__ = ["StateAtLeastOnce", "StateAtMostOnce"]


class _StateLog:
    """The changelog of one task, in transactions that begin at the commit and are short."""

    def __init__(self, delivery: ExactlyOnce) -> None:
        self._delivery = delivery
        self._begun = False
        self.mark = delivery.mark
        self.close = delivery.close

    def keep(
        self,
        topic: str,
        /,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | Partitioning | None = None,
    ) -> None:
        """Take a record of the changelog."""
        self._begin()
        self._delivery.send(topic, key=key, value=value, headers=headers, partition=partition)

    def commit(self, offsets: Offsets) -> Callable[[], None]:
        """Begin to commit what was taken, and with it these offsets of the group."""
        self._begin()
        self._begun = False
        return self._delivery.commit(offsets)

    @property
    def in_doubt(self) -> bool:
        """Return whether nobody knows what became of the last transaction."""
        return self._delivery.in_doubt

    def _begin(self) -> None:
        if not self._begun:
            self._delivery.begin()
            self._begun = True


class StateAtLeastOnce:
    """Outputs first, then state and offsets together: a crash between them writes outputs again.

    State counts each record once, whatever happens: it moves with the offsets or not at all.
    ``state`` is what commits it, under an id of this task.
    """

    def __init__(self, connection: Connection, *, state: ExactlyOnce, limits: SendLimits) -> None:
        self._log = _StateLog(state)
        self._producer = Producer(connection, limits=limits)
        self.mark = state.mark

    @property
    def send(self) -> Send:
        """Return what sends a record."""
        return self._producer.send

    @property
    def keep(self) -> Send:
        """Return what takes the changelog."""
        return self._log.keep

    def begin(self) -> None:
        """Do nothing: outputs go out as they come."""

    def take(self, offsets: Offsets) -> bool:  # noqa: ARG002 - they are committed after the work
        """Return False: offsets are committed after the work, not before it."""
        return False

    def commit(self, offsets: Offsets) -> Callable[[], None]:
        """Wait until the outputs have arrived, then begin to commit state and offsets."""
        self._producer.flush()
        return self._log.commit(offsets)

    @property
    def in_doubt(self) -> bool:
        """Return whether nobody knows whether state and offsets were committed."""
        return self._log.in_doubt

    def close(self) -> None:
        """Send what waits, if the cluster can be reached; give up what is not committed."""
        self._log.close()
        if self._producer.trouble() is None:
            with suppress(PenstockError):  # nothing depends on it: offsets were not committed
                self._producer.close()


class StateAtMostOnce(AtMostOnce):
    """The offsets first, then the work, then the state; see :class:`AtMostOnce`."""

    def __init__(
        self,
        connection: Connection,
        *,
        state: ExactlyOnce,
        consumer: Callable[[], Consumer],
        limits: SendLimits,
    ) -> None:
        super().__init__(connection, consumer=consumer, limits=limits)
        self._log = _StateLog(state)

    @property
    def keep(self) -> Send:
        """Return what takes the changelog."""
        return self._log.keep

    def commit(self, offsets: Offsets) -> Callable[[], None]:
        """Wait for the outputs, move the group, then begin to commit the state.

        In this order, so that the state is never ahead of the group.
        """
        super().commit(offsets)
        return self._log.commit({})

    @property
    def in_doubt(self) -> bool:
        """Return whether nobody knows whether the state was committed."""
        return self._log.in_doubt

    def mark(self, topic: str, *, key: bytes, value: bytes, partition: int) -> None:
        """Write one record of the changelog in a transaction of its own."""
        self._log.mark(topic, key=key, value=value, partition=partition)

    def close(self) -> None:
        """Give up what is not committed."""
        self._log.close()
        super().close()
