"""What all kinds of requests have in common, on both faces of a client."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from typing import Any, TypeVar

from penstock.client.wire import Wire
from penstock.core.graph.data import Stream, Table
from penstock.core.records.codec import JsonCodec
from penstock.errors import ConfigurationError

__all__ = ["Asking", "Loop", "SyncAsking"]

T = TypeVar("T")

_STOP_SECONDS = 10.0


class Asking:
    """A client, as far as every kind of request needs it."""

    _connected: Wire | None = None
    _codecs: dict[tuple[type, int], JsonCodec[Any]]

    @property
    def _wire(self) -> Wire:
        if self._connected is None:
            raise ConfigurationError(
                "the client is not open",
                code="client.closed",
                hint="async with Client(...) as client",
            )
        return self._connected

    def _codec(self, data: Stream[T] | Table[T], *, most: int | None = None) -> JsonCodec[T]:
        """Return what reads and writes the records of a stream or a table."""
        size = most or data.topic.max_record_bytes
        place = data.record.cls, size
        if place not in self._codecs:
            self._codecs[place] = JsonCodec(data.record, max_bytes=size)
        return self._codecs[place]


class Loop:
    """An event loop in a thread of its own, for callers that have none."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="penstock-client", daemon=True
        )
        self._stopped = False
        self._thread.start()

    def run(self, asked: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns; it ends with the caller, if that is interrupted."""
        if self._stopped:
            asked.close()
            raise ConfigurationError("the client is closed", code="client.closed")
        future = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def each(self, source: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """Yield what a generator of the loop yields."""
        try:
            while True:
                try:
                    yield self.run(_next(source))
                except StopAsyncIteration:
                    return
        finally:
            if not self._stopped:
                self.run(_end(source))

    def stop(self) -> None:
        """End the thread, and what is still being read."""
        self.run(self._loop.shutdown_asyncgens())
        self._stopped = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


class SyncAsking:
    """The same, for callers without an event loop."""

    _looping: Loop | None = None

    @property
    def _loop(self) -> Loop:
        if self._looping is None:
            raise ConfigurationError(
                "the client is not open",
                code="client.closed",
                hint="with SyncClient(...) as client",
            )
        return self._looping


async def _next(source: AsyncGenerator[T, None]) -> T:
    return await anext(source)


async def _end(source: AsyncGenerator[Any, None]) -> None:
    await source.aclose()
