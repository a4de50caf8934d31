"""WebSockets on a connection, with limits that the server below does not have.

What a client sends is parsed a handful of messages at a time, a message has few fragments, and
nothing is read from a client that does not read. Nothing is compressed: a small message cannot
become a large one, and an idle connection has no tables in memory.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

import msgspec
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.frames import CloseCode, Frame
from websockets.http11 import Response

from penstock.serving.http.problems import CONTENT_TYPE, Problem

__all__ = ["LEAVING", "BoundedSocket", "SocketLimits", "bounded_socket"]

LEAVING = "penstock.leaving"
"""The type of the message by which an application hears that the gateway is to stop."""
MOST_MESSAGES = 64
"""So many messages of a client wait, parsed, for the application; the rest waits as bytes."""
MOST_FRAGMENTS = 1000
"""So many frames one message may have."""
_SLICE_BYTES = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketLimits:
    """What one server allows its WebSockets."""

    silence_seconds: float
    """How long a client may read nothing of what is sent to it."""
    leaving_seconds: float
    """How long the application may take to end when the gateway is to stop."""


class BoundedSocket(WebSocketsSansIOProtocol):
    """One WebSocket; a class derived from it has the limits of one server."""

    limits: ClassVar[SocketLimits]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn.debug = False  # it would log the heads of requests, and those have tokens
        self.conn.reject = _rejection  # type: ignore[method-assign]
        self._unparsed = b""
        self._turn = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._unparsed = b""
        for name in [*self._timers]:
            self._cancel(name)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came: a part of it at a time, for as long as the application keeps up."""
        # No more is read while something is unparsed, so this is no more than was read at once.
        self._unparsed += data
        self._parse()
        if not self.handshake_initiated and not self.transport.is_closing():
            # The first that comes is the whole head: one that is no handshake never becomes one.
            refused = _rejection(
                HTTPStatus.BAD_REQUEST,
                "it is no GET without a body, or a line or the headers are too long",
            )
            self.transport.write(refused.serialize())
            self.transport.close()

    async def receive(self) -> Any:
        """Return the next message; now and then others have a turn before it."""
        self._turn = (self._turn + 1) % MOST_MESSAGES
        if not self._turn:
            await asyncio.sleep(0)
        message = await super().receive()
        self._parse()
        return message

    async def send(self, message: Any) -> None:
        """Send a message; OSError where the connection has ended, whoever ended it."""
        if self.close_sent:
            raise ClientDisconnected
        await super().send(message)

    def handle_cont(self, event: Frame) -> None:
        """Take a further fragment of a message; there may be so many."""
        if len(self.frames) >= MOST_FRAGMENTS:
            self.conn.fail(CloseCode.POLICY_VIOLATION, "socket.fragments")
            self.handle_parser_exception()
            return
        super().handle_cont(event)

    def pause_writing(self) -> None:
        """Read nothing until the client reads; it has so much time."""
        super().pause_writing()
        if not self.read_paused and not self.transport.is_closing():
            self.transport.pause_reading()
        self._later("unread", self.limits.silence_seconds)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        self._cancel("unread")
        super().resume_writing()
        if not self.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def on_task_complete(self, task: "asyncio.Task[None]") -> None:
        """End the connection too, also of a client that does not read the end of it."""
        super().on_task_complete(task)
        if not self.disconnected:
            self._later("ended", self.limits.silence_seconds)

    def shutdown(self) -> None:
        """Tell the application that the gateway is to stop; it has so much time to end."""
        if not self.handshake_complete or self.close_sent or self.disconnected:
            super().shutdown()
        elif "leaving" not in self._timers:
            self.queue.put_nowait({"type": LEAVING})  # type: ignore[misc,arg-type]
            self._timers["leaving"] = self.loop.call_later(
                self.limits.leaving_seconds, super().shutdown
            )

    def _parse(self) -> None:
        while self._unparsed and self.queue.qsize() < MOST_MESSAGES:
            if self.transport.is_closing():
                self._unparsed = b""
                return
            some, self._unparsed = (
                self._unparsed[:_SLICE_BYTES],
                self._unparsed[_SLICE_BYTES:],
            )
            super().data_received(some)

    def _later(self, name: str, seconds: float) -> None:
        """End the connection in a while, unless that is cancelled."""
        if name not in self._timers:
            self._timers[name] = self.loop.call_later(seconds, self._abort)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _abort(self) -> None:
        self.transport.abort()


def _rejection(status: int, text: str) -> Response:
    """Return the answer to what does not become a WebSocket, as a problem document."""
    detail = text.partition("\n")[0].removeprefix("Failed to open a WebSocket connection: ")
    body = msgspec.json.encode(
        Problem(
            status, "socket.handshake", f"this is no handshake of a WebSocket: {detail}"
        ).document()
    )
    headers = Headers(
        {"Connection": "close", "Content-Length": str(len(body)), "Content-Type": CONTENT_TYPE}
    )
    return Response(int(status), HTTPStatus(status).phrase, headers, body)


def bounded_socket(limits: SocketLimits) -> type[asyncio.Protocol]:
    """Return the protocol for uvicorn, with these limits."""
    return type("LimitedSocket", (BoundedSocket,), {"limits": limits})
