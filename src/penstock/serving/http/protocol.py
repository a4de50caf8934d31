"""HTTP/1.1 on a connection, with limits that the server below does not have.

A head has a time and a size, a client that does not read has a time, and the number of connections
is bounded: whoever is slow, silent or many costs a bounded amount of memory for a bounded time.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from penstock.serving.http.problems import CONTENT_TYPE, Problem

__all__ = ["HEAD_BYTES", "BoundedProtocol", "ConnectionLimits", "bounded_protocol"]

HEAD_BYTES = 32 << 10
"""A request line with its headers."""


def _refusal(status: HTTPStatus, code: str, detail: str, head: str = "") -> bytes:
    """Return an answer to what never becomes a request, as a problem document."""
    body = msgspec.json.encode(Problem(status, code, detail).document())
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}Content-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return lines.encode() + body


_FULL = _refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "connections.too-many",
    "too many connections are open",
    "Retry-After: 1\r\n",
)
_TOO_LARGE = _refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "head.too-large",
    f"the request line and the headers have more than {HEAD_BYTES} bytes",
)
_NOT_HTTP = _refusal(HTTPStatus.BAD_REQUEST, "request.not-http", "this is no HTTP/1.1 request")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What one server allows its connections."""

    connections: int
    head_seconds: float
    silence_seconds: float
    newest_first: bool = False
    """Where there are too many, whether the oldest that asks for nothing gives its place to a new
    one; else a new one is refused."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection; a class derived from it has the limits of one server."""

    limits: ClassVar[ConnectionLimits]

    def connection_made(self, transport: Any) -> None:
        """Begin, unless there are too many connections."""
        self._head_bytes = 0
        self._in_head = True
        self._refused = False
        self.opened_at = self.loop.time()
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        full = len(self.connections) > self.limits.connections
        if full and not (self.limits.newest_first and self._end_oldest()):
            self._refuse(_FULL)
            return
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, unless it is still the head and that is too large."""
        if self._refused:
            return
        if self._in_head and self._head_bytes > HEAD_BYTES:
            self._refuse(_TOO_LARGE)
            return
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read as HTTP; nothing more of this connection is read."""
        del msg
        self._refuse(_NOT_HTTP)

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        super().on_message_begin()
        self._begin_head()

    def on_headers_complete(self) -> None:
        """End the head."""
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Wait for the client to read, for so long."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.limits.silence_seconds, self._abort)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def _end_oldest(self) -> bool:
        """End the oldest connection that asks for nothing now; return whether there is one."""
        others = [each for each in self.connections if each is not self]
        idle = [each for each in others if isinstance(each, BoundedProtocol) and each.is_idle]
        if not idle:
            return False
        oldest = min(idle, key=lambda each: each.opened_at)
        oldest.transport.abort()
        # It leaves the set only when the loop comes to it, and more may come before that.
        self.connections.discard(oldest)
        return True

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is under way: its head has not come."""
        return self._in_head and not self._refused

    def _begin_head(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.limits.head_seconds, self._late)

    def _late(self) -> None:
        self._head_timer = None
        if self._in_head and not self.transport.is_closing():
            self.transport.abort()

    def _refuse(self, answer: bytes) -> None:
        self._refused = True
        self.transport.write(answer)
        self.transport.close()

    def _abort(self) -> None:
        self._write_timer = None
        self.transport.abort()

    def _stop_timers(self) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._write_timer = None


def bounded_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return the protocol for uvicorn, with these limits."""
    return type("LimitedProtocol", (BoundedProtocol,), {"limits": limits})
