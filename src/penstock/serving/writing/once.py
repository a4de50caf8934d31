"""The slots of a gateway, for its event loop: requests of one slot one after the other."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from uuid import uuid4

from penstock.backbone.client.connection import Connection
from penstock.core.graph.gateway import REQUEST_SLOTS, Gateway
from penstock.errors import TransientError
from penstock.serving.writing.parsing import Taken
from penstock.serving.writing.slots import Once, Slot, Target, Written

__all__ = ["MOST_WAITING", "Transactions"]

MOST_WAITING = 256
"""So many atomic requests may wait for their turn; more are refused."""
_ATOMIC_SLOTS = 4
"""So many requests without a key are written at a time."""
_TRANSACTION_TIMEOUT = timedelta(seconds=15)
"""How long a killed gateway's transaction may hold back readers of committed records."""


class Transactions:
    """Writes requests as transactions: with an idempotency key once, without one atomically."""

    def __init__(
        self,
        app: str,
        gateway: Gateway,
        connection: Connection,
        *,
        remembered: int,
        wait: timedelta,
    ) -> None:
        self._wait_seconds = wait.total_seconds()
        topic = gateway.requests(app).name
        group = f"{app}.{gateway.name}"
        process = uuid4().hex[:12]

        def slot(number: int | None, name: str) -> Slot:
            return Slot(
                connection,
                topic=topic,
                number=number,
                transactional_id=f"{group}:{name}",
                timeout=_TRANSACTION_TIMEOUT,
                most=max(1, remembered // REQUEST_SLOTS),
            )

        self._slots = [slot(number, f"slot-{number}") for number in range(REQUEST_SLOTS)]
        self._free = [slot(None, f"{process}-{number}") for number in range(_ATOMIC_SLOTS)]
        self._locks = [asyncio.Lock() for _ in self._slots]
        self._free_count = asyncio.Semaphore(_ATOMIC_SLOTS)
        self._threads = ThreadPoolExecutor(
            REQUEST_SLOTS + _ATOMIC_SLOTS, thread_name_prefix="requests"
        )
        self._waiting = 0

    async def write(
        self, target: Target, records: Sequence[Taken], *, once: Once | None
    ) -> Written:
        """Write all records or none; see :meth:`Slot.write`.

        TransientError ``intake.full``: too many wait for their turn, or they wait for too long.
        """
        if self._waiting >= MOST_WAITING:
            raise TransientError(
                f"{self._waiting} atomic requests wait for their turn", code="intake.full"
            )
        self._waiting += 1
        try:
            if once is not None:
                number = int.from_bytes(hashlib.sha256(once.key).digest()[-4:]) % len(self._slots)
                async with self._turn(self._locks[number]):
                    return await self._run(self._slots[number], target, records, once)
            async with self._turn(self._free_count):
                slot = self._free.pop()
                try:
                    return await self._run(slot, target, records, None)
                finally:
                    self._free.append(slot)
        finally:
            self._waiting -= 1

    @asynccontextmanager
    async def _turn(self, taken: asyncio.Lock | asyncio.Semaphore) -> AsyncGenerator[None, None]:
        """Wait for a turn, and give it up behind the block."""
        try:
            async with asyncio.timeout(self._wait_seconds):
                await taken.acquire()
        except TimeoutError:
            raise TransientError(
                f"atomic requests waited for {self._wait_seconds:g}s for their turn",
                code="intake.full",
            ) from None
        try:
            yield
        finally:
            taken.release()

    async def _run(
        self, slot: Slot, target: Target, records: Sequence[Taken], once: Once | None
    ) -> Written:
        loop = asyncio.get_running_loop()
        call = partial(slot.write, target, records, once=once)
        running = loop.run_in_executor(self._threads, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            # Whoever is next must not have the slot while it is still at work.
            await asyncio.wait([running])
            raise

    def close(self) -> None:
        """Give all slots up; call it when no request is under way."""
        for slot in (*self._slots, *self._free):
            self._threads.submit(slot.close)
        self._threads.shutdown()
