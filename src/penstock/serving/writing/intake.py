"""Puts records on the log without waiting in a thread: many requests share one producer.

Nothing is acknowledged that is not on the log. How many records wait for Kafka is bounded: a
request of known size is refused where there is no room, a stream waits.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Any

import msgspec

from penstock.backbone.log.acknowledging import AcknowledgingProducer
from penstock.core.graph.data import Stream
from penstock.errors import DataError, PenstockError, TransientError
from penstock.serving.writing.parsing import Mistake, Taken

__all__ = ["Intake", "Outcome", "Stand", "Writing"]


class Stand(msgspec.Struct, frozen=True, gc=False):
    """Where a record stands on the log; made for every record, so it must be cheap to make."""

    partition: int
    offset: int


Outcome = Stand | Mistake | PenstockError
"""What became of one record: where it stands, what is wrong with it, or why nobody knows."""


@dataclass(slots=True, eq=False)
class Writing:
    """Some records of one request on their way; ``outcomes`` is complete when it is ``done``."""

    outcomes: list[Any]
    done: asyncio.Future[None]
    queued: int = -1
    """How many went to the client; negative: not all of them are there yet."""
    heard: int = 0
    errors: list[tuple[int, PenstockError]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether all that went to the client was heard of."""
        return self.heard == self.queued


class Intake:
    """The way onto the log for the records of all requests; for one event loop.

    ``trouble`` is why Kafka takes nothing now, as somebody found out who may wait for it.
    """

    def __init__(self, producer: AcknowledgingProducer, *, most_waiting: int) -> None:
        self._producer = producer
        self._most = most_waiting
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Writing] = deque()
        self._waking = False
        self._room = asyncio.Event()
        self._room.set()
        self._turns: dict[str, Any] = {}
        self.waiting = 0
        """How many records wait for Kafka."""
        self.trouble = ""

    def use(self, producer: AcknowledgingProducer) -> None:
        """Send by another producer: the former one has failed as a whole."""
        self._producer = producer

    def set_partitions(self, counts: Mapping[str, int]) -> None:
        """Hear how many partitions the topics have whose records go round."""
        self._turns = {topic: cycle(range(count)) for topic, count in counts.items()}

    def require_room(self, count: int) -> None:
        """Raise TransientError ``intake.full`` or ``kafka.away`` where records cannot be taken."""
        if self.trouble:
            raise TransientError(self.trouble, code="kafka.away")
        if self.waiting + count > self._most:
            raise TransientError(
                f"{self.waiting} records wait for Kafka: no more are taken", code="intake.full"
            )

    async def wait_for_room(self) -> None:
        """Wait until a stream may send on; TransientError ``kafka.away``."""
        while self.waiting >= self._most:
            self._room.clear()
            await self._room.wait()
        if self.trouble:
            raise TransientError(self.trouble, code="kafka.away")

    def send(self, stream: Stream[Any], records: Sequence[Taken | Mistake]) -> Writing:
        """Send records; what is a mistake stays one. Await ``done`` of what is returned."""
        outcomes: list[Any] = list(records)
        writing = Writing(outcomes, self._loop.create_future())
        topic, turns, sent = stream.topic.name, self._turns.get(stream.topic.name), 0
        for at, record in enumerate(records):
            if isinstance(record, Mistake):
                continue
            try:
                self._producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    partition=next(turns) if turns else None,
                    on_delivered=partial(self._delivered, writing, at),
                    headers=record.headers,
                )
                sent += 1
            except DataError as error:
                outcomes[at] = Mistake(error.code, error.message)
            except PenstockError as error:
                outcomes[at] = error
        self.waiting += sent
        writing.queued = sent
        if writing.complete:
            self._finish(writing)
        return writing

    def wake(self) -> None:
        """Hear from the producer's thread that records were heard of."""
        if self._ready and not self._waking:
            self._waking = True
            self._loop.call_soon_threadsafe(self._settle)

    def _delivered(
        self, writing: Writing, at: int, partition: int, offset: int, error: PenstockError | None
    ) -> None:
        """Take what became of a record; this is the producer's thread."""
        if error is None:
            writing.outcomes[at] = Stand(partition, offset)
        elif isinstance(error, DataError):
            writing.outcomes[at] = Mistake(error.code, error.message)
        else:
            writing.outcomes[at] = error
        writing.heard += 1
        if writing.complete:
            self._ready.append(writing)

    def _settle(self) -> None:
        self._waking = False
        while self._ready:
            self._finish(self._ready.popleft())

    def _finish(self, writing: Writing) -> None:
        if writing.done.done():
            return
        writing.done.set_result(None)
        self.waiting -= writing.queued
        if self.waiting < self._most:
            self._room.set()
