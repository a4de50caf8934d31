"""Asks another process: many questions at a time over one connection, for one event loop."""

import asyncio
import contextlib
import itertools
from typing import Self

from penstock.errors import TransientError
from penstock.machine.peers.frames import greet, read_frame, write_frame

__all__ = ["Visitor"]

_CONNECT_SECONDS = 2.0
_MOST_WAITING = 10_000
"""So many questions of one connection may wait for their answers; more are refused."""


class Visitor:
    """A connection to a host. TransientError from any method: it is of no more use."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._listening = asyncio.create_task(self._listen())
        self.gone = False

    @classmethod
    async def connect(cls, address: str, secret: bytes) -> Self:
        """Return a connection to ``host:port``; ConfigurationError: it has another secret."""
        host, _, port = address.rpartition(":")
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                try:
                    await greet(reader, writer, secret)
                except BaseException:
                    writer.close()
                    raise
        except (OSError, ValueError, TimeoutError) as error:
            raise TransientError(
                f"nobody answers on {address}", code="peer.gone", detail=str(error)
            ) from error
        return cls(reader, writer)

    async def ask(self, question: bytes, *, seconds: float) -> bytes:
        """Return the answer to a question; TransientError ``peer.gone`` or ``peer.slow``."""
        if self.gone or len(self._waiting) >= _MOST_WAITING:
            raise _gone()
        number = next(self._numbers)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            write_frame(self._writer, number, question)
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            text = f"no answer within {seconds:g}s"
            raise TransientError(text, code="peer.slow") from None
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Hang up."""
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening
        self._end()

    async def _listen(self) -> None:
        try:
            while True:
                number, payload = await read_frame(self._reader)
                waiting = self._waiting.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(payload)
        except (OSError, EOFError):
            self._end()

    def _end(self) -> None:
        self.gone = True
        self._writer.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(_gone())


def _gone() -> TransientError:
    return TransientError("the worker hung up", code="peer.gone")
