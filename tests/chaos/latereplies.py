"""A broker whose replies come late: a proxy that holds back some answers to produce and commit.

The broker has done what it was asked for; only the word of it is late, by seconds, or comes when
nobody waits for it any more. Replies of one connection keep their order, as Kafka promises.
"""

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["LateReplies", "late_replies"]

_PRODUCE, _OFFSET_COMMIT, _END_TRANSACTION, _TRANSACTION_OFFSETS = 0, 8, 26, 28
HELD = frozenset({_PRODUCE, _OFFSET_COMMIT, _END_TRANSACTION, _TRANSACTION_OFFSETS})
"""The requests whose replies may be late, by their numbers in the protocol."""
_REQUEST = struct.Struct(">hhi")
"""How a request begins: what it asks for, in which version, and the number of its reply."""
_REPLY = struct.Struct(">i")
_SIZE = struct.Struct(">I")
_SECONDS = 10.0


class LateReplies:
    """Stands between clients and one broker; ``share`` of the replies is late, 0 for none."""

    def __init__(self, port: int, *, seed: int, share: float, longest: float) -> None:
        self.held: list[float] = []
        """How many seconds each late reply was held."""
        self.share = share
        self._port = port
        self._longest = longest
        self._chance = random.Random(seed)
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self, entrance: socket.socket, stop: asyncio.Event) -> None:
        """Serve whoever comes in until told to stop."""
        server = await asyncio.start_server(self._connected, sock=entrance)
        await stop.wait()
        server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.ensure_future(self._connection(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, asks = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return
        asked: dict[int, int] = {}
        ways = [
            asyncio.ensure_future(self._requests(reader, asks, asked)),
            asyncio.ensure_future(self._replies(answers, writer, asked)),
        ]
        try:
            # Either end may hang up; the other then hears of it.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            asks.close()
            writer.close()

    async def _requests(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, asked: dict[int, int]
    ) -> None:
        while True:
            body = await _frame(source)
            what, _, number = _REQUEST.unpack_from(body)
            asked[number] = what
            await _pass_on(sink, body)

    async def _replies(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, asked: dict[int, int]
    ) -> None:
        while True:
            body = await _frame(source)
            (number,) = _REPLY.unpack_from(body)
            if asked.pop(number, None) in HELD and self._chance.random() < self.share:
                seconds = self._chance.uniform(1, self._longest)
                self.held.append(seconds)
                await asyncio.sleep(seconds)
            await _pass_on(sink, body)


async def _frame(source: asyncio.StreamReader) -> bytes:
    (size,) = _SIZE.unpack(await source.readexactly(_SIZE.size))
    return await source.readexactly(size)


async def _pass_on(sink: asyncio.StreamWriter, body: bytes) -> None:
    sink.write(_SIZE.pack(len(body)) + body)
    await sink.drain()


@contextmanager
def late_replies(
    entrance: socket.socket, port: int, *, seed: int, share: float, longest: float
) -> Iterator[LateReplies]:
    """Give a proxy from the entrance to the broker's port, in a thread that ends with the block."""
    proxy = LateReplies(port, seed=seed, share=share, longest=longest)
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(proxy.serve(entrance, stop),))
    thread.start()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(_SECONDS)
        entrance.close()
        loop.close()
