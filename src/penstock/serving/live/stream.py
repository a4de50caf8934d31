"""``/v1/live/events``: live queries as server-sent events."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.core.feeds.requests import Followed
from penstock.errors import PenstockError
from penstock.serving.http.problems import Problem
from penstock.serving.live.offered import Offered
from penstock.serving.live.session import Session
from penstock.serving.live.watching import watch

__all__ = ["EVENTS", "LiveStream", "read_tokens"]

EVENTS = "text/event-stream"
_RETRY_MILLISECONDS = 1000
_MOST_TOKENS_BYTES = 128 << 10


class _Head(msgspec.Struct):
    """What every message begins with."""

    type: str
    id: str = ""
    token: str = ""


_HEAD = msgspec.json.Decoder(_Head)
_TOKENS = msgspec.json.Decoder(dict[str, str])


def read_tokens(text: str) -> Mapping[str, str]:
    """Return the tokens of a ``Last-Event-ID``; none where it is not ours."""
    if len(text) > _MOST_TOKENS_BYTES:
        return {}
    try:
        return _TOKENS.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return {}


class LiveStream(Response):
    """The answer to one who follows, for as long as they do."""

    def __init__(
        self,
        several: Sequence[Followed],
        offered: Offered,
        *,
        heartbeat_seconds: float,
        unread_bytes: int,
        numbered: bool,
        stop: asyncio.Event,
    ) -> None:
        self._several = several
        self._numbered = numbered
        self._offered = offered
        self._heartbeat = heartbeat_seconds
        self._most = unread_bytes
        self._stop = stop
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._some = asyncio.Event()
        self._tokens: dict[str, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        session = Session(
            self._offered,
            scope,
            self._tell,
            heartbeat_seconds=self._heartbeat,
            on_full=lambda: None,
        )
        headers = [(b"content-type", EVENTS.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        self._add(b"retry: %d\n\n" % _RETRY_MILLISECONDS)
        for each in self._several:
            session.subscribe(each)
        session.begin()
        several = [
            asyncio.create_task(each)
            for each in (
                self._write(send, session),
                _gone(receive),
                self._stop.wait(),
                watch(scope, session),
            )
        ]
        failed: Problem | PenstockError | None = None
        try:
            done, _ = await asyncio.wait(several, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except (Problem, PenstockError) as error:
            failed = error
        finally:
            session.close()
            for task in several:
                task.cancel()
            for task in several:
                with suppress(asyncio.CancelledError, Exception):
                    await task
        await self._end(send, failed, session)

    async def _end(
        self, send: Send, failed: Problem | PenstockError | None, session: Session
    ) -> None:
        if failed is None and self._stop.is_set():
            text = "the gateway stops: connect again, with tokens"
            failed = Problem(HTTPStatus.SERVICE_UNAVAILABLE, "live.closed", text)
        if failed is not None:
            self._most += self._size  # the last message has room
            session.refuse(failed)
        with suppress(OSError):
            body = b"".join(self._waiting)
            await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _write(self, send: Send, session: Session) -> None:
        """Send what waits, as fast as the client reads."""
        while True:
            await self._some.wait()
            self._some.clear()
            while self._waiting:
                body = self._waiting[0]
                await send({"type": "http.response.body", "body": body, "more_body": True})
                self._size -= len(self._waiting.popleft())
            if session.is_full:
                session.go_on()

    def _tell(self, message: bytes) -> bool:
        if self._waiting and self._size + len(message) > self._most:
            return False
        head = _HEAD.decode(message)
        number = b""
        if head.token and self._numbered:
            self._tokens[head.id] = head.token
            number = b"id: " + msgspec.json.encode(self._tokens) + b"\n"
        elif head.type in ("must-refetch", "error"):
            self._tokens.pop(head.id, None)
        # JSON has no line ends, so the data is one line.
        self._add(b"event: %b\n%bdata: %b\n\n" % (head.type.encode(), number, message))
        return True

    def _add(self, event: bytes) -> None:
        self._waiting.append(event)
        self._size += len(event)
        self._some.set()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
