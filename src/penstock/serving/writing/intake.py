"""Puts records on the log without waiting in a thread: many requests share one producer.

Nothing is acknowledged that is not on the log. How many records wait for Kafka is bounded: a
request of known size is refused where there is no room, a stream waits.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from penstock.backbone.log.acknowledging import AcknowledgingProducer, Sending, Stand
from penstock.core.graph.data import Stream
from penstock.errors import DataError, PenstockError, TransientError
from penstock.serving.writing.parsing import Mistake, Taken

__all__ = ["Intake", "Outcome", "Stand", "Writing"]

_SERVE_SECONDS = 0.001
"""How often it is asked what became of records, while any are on their way."""

Outcome = Stand | Mistake | PenstockError
"""What became of one record: where it stands, what is wrong with it, or why nobody knows."""


class Writing:
    """Some records of one request on their way; ``outcomes`` is complete when it is ``done``."""

    __slots__ = ("done", "outcomes", "waiting")

    def __init__(self, outcomes: list[Any], done: asyncio.Future[None]) -> None:
        self.outcomes = outcomes
        self.done = done
        self.waiting = 0


class Intake:
    """The way onto the log for the records of all requests; for one event loop.

    ``trouble`` is why Kafka takes nothing now, as somebody found out who may wait for it.
    """

    def __init__(self, producer: AcknowledgingProducer, *, most_waiting: int) -> None:
        self._producer = producer
        self._most = most_waiting
        self._loop = asyncio.get_running_loop()
        self._serving = False
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
        taken = [each for each in enumerate(outcomes) if type(each[1]) is Taken]
        self.waiting += len(taken)
        writing.waiting = len(taken)
        topic = stream.topic.name
        sending = Sending(outcomes, lambda: self._finish(writing, sending))
        sent = self._producer.send(topic, taken, sending, partitions=self._turns.get(topic))
        if sent and not self._serving:
            self._serving = True
            self._loop.call_later(_SERVE_SECONDS, self._serve)
        return writing

    def _serve(self) -> None:
        """Let the producer tell what became of records, for as long as any are on their way."""
        self._producer.serve()
        if self.waiting:
            self._loop.call_later(_SERVE_SECONDS, self._serve)
        else:
            self._serving = False

    def _finish(self, writing: Writing, sending: Sending) -> None:
        """Take all that became of the records of a request; a producer ends in another thread."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._loop.call_soon_threadsafe(self._end, writing, sending)
        else:
            self._end(writing, sending)

    def _end(self, writing: Writing, sending: Sending) -> None:
        if sending.failed:
            for at, outcome in enumerate(writing.outcomes):
                if isinstance(outcome, DataError):
                    writing.outcomes[at] = Mistake(outcome.code, outcome.message)
        self.waiting -= writing.waiting
        if not writing.done.done():
            writing.done.set_result(None)
        if self.waiting < self._most:
            self._room.set()
