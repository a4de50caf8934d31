"""``/v1/streams/{name}/socket``: records in over a WebSocket, acknowledged in order, with credit.

A client may have so many records unacknowledged: its credit. Beyond that nothing is read from it.
While Kafka is away its credit is 0. After a record that may not be on the log nothing more of that
client is taken, so that its records keep their order when it sends them again.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from penstock.errors import PenstockError, TransientError
from penstock.serving.http.conversation import Conversation
from penstock.serving.meter import Meter
from penstock.serving.records.answers import outcome_document, too_long
from penstock.serving.records.counting import settle
from penstock.serving.writing.intake import Intake, Outcome, Writing
from penstock.serving.writing.parsing import Mistake, RecordReader, Taken, parts_of

__all__ = ["CREDIT", "UNACKNOWLEDGED_BYTES", "RecordSocket"]

CREDIT = 1000
"""So many records of one client may be unacknowledged."""
UNACKNOWLEDGED_BYTES = 4 << 20
"""So many bytes of their JSON, unless it is one message."""
_TOLD_AT_ONCE = 500
_LOOK_SECONDS = 0.2


class RecordSocket:
    """Takes the records of one client; for one conversation."""

    def __init__(
        self,
        conversation: Conversation,
        reader: RecordReader,
        *,
        intake: Intake,
        meter: Meter,
    ) -> None:
        self._conversation = conversation
        self._reader = reader
        self._intake = intake
        self._meter = meter
        self._under_way: deque[tuple[Writing, int]] = deque()
        self._unacknowledged = 0
        self._bytes = 0
        self._told = 0
        self._acknowledging: asyncio.Task[None] | None = None
        self._failed: PenstockError | None = None
        self._changed = asyncio.Event()

    async def take(self) -> None:
        """Take records until the client goes, the gateway is to stop, or it is cancelled.

        All that were sent to the log are acknowledged before, if the client is still there.
        """
        try:
            self._tell({"credit": CREDIT})
            while (message := await self._conversation.hear()) is not None:
                raw = message.encode() if isinstance(message, str) else message
                await self._wait_for_credit(len(raw))
                if self._failed is not None:
                    break
                self._send(raw)
                del message, raw  # an idle client holds nothing
        finally:
            while self._acknowledging is not None:
                await asyncio.shield(self._acknowledging)
        if self._failed is not None:
            raise self._failed

    def _send(self, raw: bytes) -> None:
        most = self._reader.stream.topic.max_record_bytes
        parts, _ = parts_of(raw, most=CREDIT)
        records: list[Taken | Mistake] = [
            too_long(most) if len(part) > most else self._reader.read(part) for part in parts
        ]
        if not records:
            return
        self._meter.took(len(records))
        self._under_way.append((self._intake.send(self._reader.stream, records), len(raw)))
        self._unacknowledged += len(records)
        self._bytes += len(raw)
        if self._acknowledging is None:
            self._acknowledging = asyncio.create_task(self._acknowledge())

    async def _wait_for_credit(self, size: int) -> None:
        """Wait until so many bytes may be sent to the log; a client that goes on sending waits."""
        while self._failed is None and self._unacknowledged and not self._has_credit(size):
            self._changed.clear()
            await self._changed.wait()
        while self._failed is None:
            await self._wait_for_kafka()
            with suppress(TransientError):  # it is away again
                await self._intake.wait_for_room()
                return

    async def _wait_for_kafka(self) -> None:
        why = self._intake.trouble
        if not why:
            return
        self._tell({"credit": 0, "why": {"code": "kafka.away", "detail": why}})
        while self._intake.trouble and self._failed is None:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()
        self._tell({"credit": CREDIT})

    def _has_credit(self, size: int) -> bool:
        return self._unacknowledged < CREDIT and self._bytes + size <= UNACKNOWLEDGED_BYTES

    async def _acknowledge(self) -> None:
        """Tell what became of the records, in order, until none is under way."""
        try:
            while self._under_way:
                await self._under_way[0][0].done
                outcomes: list[Outcome] = []
                while (
                    self._under_way
                    and self._under_way[0][0].done.done()
                    and len(outcomes) < _TOLD_AT_ONCE
                ):
                    writing, size = self._under_way.popleft()
                    settle(self._meter, writing.outcomes)
                    outcomes += writing.outcomes
                    self._bytes -= size
                await self._tell_outcomes(outcomes)
                self._unacknowledged -= len(outcomes)
                self._changed.set()
        finally:
            self._acknowledging = None
            self._changed.set()

    async def _tell_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        found = []
        for outcome in outcomes:
            self._told += 1
            found.append({"number": self._told, **outcome_document(outcome)})
            if isinstance(outcome, PenstockError) and self._failed is None:
                self._failed = outcome
        document = msgspec.json.encode({"acknowledged": found})
        while not self._conversation.tell(document):
            await self._conversation.drained()  # nothing is read from one who does not read

    def _tell(self, document: dict[str, object]) -> None:
        self._conversation.tell(msgspec.json.encode(document))
