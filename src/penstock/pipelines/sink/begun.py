"""The last batch that each writer of topics has begun, kept where nothing forgets it.

A checkpoint says what a pipeline has read; it may be deleted, or put back from an older copy. What
was written stays. So before the tasks of a batch may commit anything, the driver writes down which
batch that is, in a compacted topic. A start compares the two: see ``continuity``.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.sending import SendLimits
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.core.topic import TopicSpec
from penstock.errors import PenstockError

__all__ = ["BATCH_TOPIC", "BatchMarker", "Begun", "BegunBatches", "fingerprint"]

RENEWAL = timedelta(hours=1)
"""How long a run relies on positions, which the cluster forgets (after a week by default)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OftenCompacted(TopicSpec):
    """A topic in which each key is written all the time, and which is read as a whole."""

    def config(self) -> dict[str, str]:
        """Return settings with which the broker keeps little more than the last of each key."""
        return TopicSpec.config(self) | {
            "segment.bytes": str(1 << 20),
            "segment.ms": str(timedelta(hours=1) // timedelta(milliseconds=1)),
            "min.cleanable.dirty.ratio": "0.1",
            "delete.retention.ms": str(timedelta(hours=1) // timedelta(milliseconds=1)),
        }


BATCH_TOPIC = _OftenCompacted(
    name="_penstock.batches", partitions=1, compacted=True, retention=None, partitioning="key"
)


class Begun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A batch whose rows may have been written, in part or all."""

    query: str
    """Spark's id of the query: that of its checkpoint."""
    batch: int
    plan: str
    """A fingerprint of what Spark wrote down when it planned the batch: its offsets and time."""
    program: str = ""
    tasks: int = 0
    """The number of tasks its rows were split into; 0: the rows stayed with the state."""
    done: bool = False
    """Whether the whole batch is known to be written; otherwise this is unknown."""


class BegunBatches:
    """The last batch begun under each name. The topic is small and read whole each time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, name: str) -> Begun | None:
        """Return the last batch that was begun; None: none ever was, as far as anybody knows."""
        if not Topics(self._connection).exists(BATCH_TOPIC.name):
            return None
        found: bytes | None = None
        # Uncommitted ones too: another writer that hangs half-way must hide nothing, and of a batch
        # whose mark was given up nothing is written, which whoever repeats it finds out.
        for record in LogReader(self._connection).read(BATCH_TOPIC.name, committed=False):
            if record.key == name.encode():
                found = record.value
        return None if found is None else msgspec.json.decode(found, type=Begun)

    def hand_over(self, name: str, *, to: str) -> None:
        """Let another name continue after the last batch of this one; forget its own batches."""
        begun = self.get(name)
        self._put(to, None if begun is None else msgspec.json.encode(begun))

    def forget(self, name: str) -> None:
        """Forget what was begun under a name."""
        if self.get(name) is not None:
            self._put(name, None)

    def _put(self, name: str, value: bytes | None) -> None:
        Topics(self._connection).declare([BATCH_TOPIC])
        # As a marker would: one that still runs under this name is fenced.
        with TransactionalProducer(self._connection, _producer_id(name)) as producer:
            producer.begin()
            producer.send(BATCH_TOPIC.name, key=name.encode(), value=value)
            producer.commit()


class BatchMarker:
    """Writes down each batch that one run begins; whoever makes the next one fences it.

    ``renew`` is called every ``RENEWAL`` or so, between two batches; it raises where the run is no
    longer the last one, and renews what the cluster would forget.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        *,
        renew: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._name = name
        self._renew = renew
        self._clock = clock
        Topics(connection).declare([BATCH_TOPIC])
        self._producer = self._made()

    def mark(self, begun: Begun) -> None:
        """Make it durable that a batch is begun. Errors are the backbone's; then it is not."""
        if self._clock() - self._made_at > RENEWAL.total_seconds():
            self._producer.close()
            self._renew()
            self._producer = self._made()
        producer = self._producer
        producer.begin()
        try:
            producer.send(
                BATCH_TOPIC.name, key=self._name.encode(), value=msgspec.json.encode(begun)
            )
            producer.commit()
        except PenstockError:
            self.close()
            raise

    def close(self) -> None:
        """Release the producer."""
        self._producer.close()

    def _made(self) -> TransactionalProducer:
        self._made_at = self._clock()
        return TransactionalProducer(
            self._connection, _producer_id(self._name), limits=SendLimits(linger=timedelta(0))
        )


def _producer_id(name: str) -> str:
    return f"{name}.begun"


def fingerprint(*texts: str) -> str:
    """Return a short text that differs where these differ."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]
