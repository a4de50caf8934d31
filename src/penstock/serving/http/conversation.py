"""One WebSocket as a room of the gateway has it: messages in, messages out, and how it ends.

Messages out wait in a queue of so many bytes. A room that has more to say than the client reads is
told at once, and decides what that means: it waits, it says less, or it ends the conversation.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from websockets.frames import CloseCode

from penstock.errors import PenstockError
from penstock.serving.http.guard import SUBPROTOCOL
from penstock.serving.http.problems import Problem, problem_of
from penstock.serving.http.sockets import LEAVING

__all__ = ["Conversation", "ConversationLimits", "Converse", "socket_routes"]

_LAST_SECONDS = 1.0
"""How long the last message may take to a client that does not read."""
_ON_CLOSE = {
    HTTPStatus.SERVICE_UNAVAILABLE: CloseCode.TRY_AGAIN_LATER,
    HTTPStatus.TOO_MANY_REQUESTS: CloseCode.TRY_AGAIN_LATER,
    HTTPStatus.INTERNAL_SERVER_ERROR: CloseCode.INTERNAL_ERROR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLimits:
    """What one conversation may cost."""

    unread_bytes: int
    """So many bytes of messages wait for the client to read."""
    silence_seconds: float
    """How long messages out may wait for the client when the conversation ends."""


class Conversation:
    """One WebSocket; for its own task alone, apart from ``tell``, which any of the loop may call.

    Until ``accept`` a Problem that is raised answers the request; then it ends the conversation.
    """

    __slots__ = (
        "_changed",
        "_limits",
        "_queue",
        "_queued",
        "_receive",
        "_send",
        "_writing",
        "accepted",
        "gone",
        "last_members",
        "leaving",
        "scope",
    )

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, *, limits: ConversationLimits
    ) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self._limits = limits
        self._queue: deque[str] = deque()
        self._queued = 0
        self._writing: asyncio.Task[None] | None = None
        self._changed: asyncio.Event | None = None
        self.accepted = False
        self.last_members: dict[str, str] = {}
        """What the message has, beside the problem, that says why the conversation ends."""
        self.gone = False
        """Whether the client has gone."""
        self.leaving = False
        """Whether the gateway is to stop."""

    async def accept(self) -> None:
        """Begin: the client may speak."""
        await self._receive()  # that it wants to
        offered = self.scope.get("subprotocols") or ()
        chosen = SUBPROTOCOL if SUBPROTOCOL in offered else None
        await self._send({"type": "websocket.accept", "subprotocol": chosen, "headers": []})
        self.accepted = True

    async def hear(self) -> str | bytes | None:
        """Return the next message of the client; None: it has gone, or the gateway is to stop."""
        if self.gone or self.leaving:
            return None
        message = await self._receive()
        if message["type"] == LEAVING:
            self.leaving = True
            return None
        if message["type"] != "websocket.receive":
            self._lose()
            return None
        text: str | None = message.get("text")
        return message["bytes"] if text is None else text

    def tell(self, message: str | bytes) -> bool:
        """Send a message soon; False: it will not be, too much waits for the client to read.

        A message to a client that has gone is thrown away. One alone may be of any size.
        """
        if self.gone:
            return True
        text = message if isinstance(message, str) else message.decode()
        if self._queue and self._queued + len(text) > self._limits.unread_bytes:
            return False
        self._queue.append(text)
        self._queued += len(text)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())
        return True

    async def drained(self) -> None:
        """Wait until the client has read all messages, or has gone."""
        while self._queue and not self.gone:
            if self._changed is None:
                self._changed = asyncio.Event()
            self._changed.clear()
            await self._changed.wait()

    async def end(self, problem: Problem | None = None) -> None:
        """End; what waits for the client is sent before, if it reads, and then why it ends."""
        if not self.accepted or self.gone:
            await self.stop_writing()
            return
        code, reason = CloseCode.NORMAL_CLOSURE, ""
        if problem is not None:
            last = {**self.last_members, "problem": problem.document()}
            document = msgspec.json.encode(last)
            code, reason = _close_code(problem), problem.code
            self._queue.append(document.decode())
        elif self.leaving:
            code, reason = CloseCode.SERVICE_RESTART, "gateway.leaving"
        if self._queue and self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())
        behind = self._queued > self._limits.unread_bytes // 2
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS if behind else self._limits.silence_seconds):
                await self.drained()
        await self.stop_writing()
        self.gone = True
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await self._send({"type": "websocket.close", "code": int(code), "reason": reason})

    async def stop_writing(self) -> None:
        """Send nothing more of what waits."""
        writing = self._writing
        if writing is not None:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing

    async def _write(self) -> None:
        try:
            while self._queue:
                # It stays in the queue until it is sent: what waits is counted with it.
                await self._send({"type": "websocket.send", "text": self._queue[0]})
                if self._queue:
                    self._queued -= len(self._queue.popleft())
                if self._changed is not None and not self._queue:
                    self._changed.set()
        except OSError:
            self._lose()
        finally:
            self._writing = None

    def _lose(self) -> None:
        self.gone = True
        self._queue.clear()
        self._queued = 0
        if self._changed is not None:
            self._changed.set()


Converse = Callable[[Conversation], Awaitable[None]]
"""Holds one conversation; it accepts it, and ends when it returns."""


class _Socket:
    """The ASGI application at the path of a WebSocket."""

    def __init__(self, converse: Converse, limits: ConversationLimits) -> None:
        self._converse = converse
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        conversation = Conversation(scope, receive, send, limits=self._limits)
        try:
            await self._converse(conversation)
        except (Problem, PenstockError) as error:
            if not conversation.accepted:
                raise
            problem = error if isinstance(error, Problem) else problem_of(error)
            await conversation.end(problem)
        else:
            await conversation.end()
        finally:
            await conversation.stop_writing()


def socket_routes(path: str, converse: Converse, *, limits: ConversationLimits) -> list[BaseRoute]:
    """Return the routes of a path that is a WebSocket; a plain GET is told so."""

    async def refuse(request: Request) -> Response:
        raise Problem(
            HTTPStatus.UPGRADE_REQUIRED,
            "socket.upgrade",
            f"{request.url.path} is a WebSocket",
            headers={"Upgrade": "websocket"},
        )

    # Starlette takes any ASGI application here; its type says functions only.
    endpoint: Any = _Socket(converse, limits)
    return [WebSocketRoute(path, endpoint), Route(path, refuse, methods=["GET"])]


def _close_code(problem: Problem) -> CloseCode:
    return _ON_CLOSE.get(HTTPStatus(problem.status), CloseCode.POLICY_VIOLATION)
