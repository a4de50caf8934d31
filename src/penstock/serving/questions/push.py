"""``GET .../tickets/{ticket}/events``: the answer for a ticket, as a server-sent event."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.errors import TransientError
from penstock.serving.http.problems import Problem
from penstock.serving.questions.asked import QuestionDesk
from penstock.serving.questions.ticket import Ticket
from penstock.serving.questions.window import Failure

__all__ = ["EVENTS", "AnswerEvents"]

EVENTS = "text/event-stream"
_BEAT_SECONDS = 10.0
"""How long nothing is sent before a comment says that the gateway is there."""
_FIRST = b"retry: 1000\n\n"


class AnswerEvents(Response):
    """Waits for the answer for as long as the ticket is good and the caller is there, and may."""

    def __init__(
        self, desk: QuestionDesk, ticket: Ticket, *, refused: Coroutine[Any, Any, Problem]
    ) -> None:
        self._refused = refused
        self._desk = desk
        self._ticket = ticket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        del scope
        headers = [(b"content-type", EVENTS.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await _send(send, _FIRST)
        telling = asyncio.create_task(self._tell(send))
        refused = asyncio.create_task(self._refused)
        gone, leaving = _gone(receive), self._desk.leaving.wait()
        tasks: list[asyncio.Task[Any]] = [
            telling,
            refused,
            asyncio.create_task(gone),
            asyncio.create_task(leaving),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError, OSError):
                    await task
        if refused.done() and not refused.cancelled():
            problem = refused.result()
            told = msgspec.json.encode({"code": problem.code, "detail": problem.detail})
            await _send(send, b"event: ended\ndata: " + told + b"\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        while (left := self._desk.seconds_left(self._ticket)) > 0:
            seconds = min(left, _BEAT_SECONDS)
            try:
                found = await self._desk.answers.wait(self._ticket, seconds=seconds)
            except TransientError:  # the log cannot be asked now
                found = None
                await asyncio.sleep(1)
            if isinstance(found, Failure):
                told = msgspec.json.encode(found.problem().document())
                await _send(send, b"id: failed\nevent: failed\ndata: " + told + b"\n\n")
                return
            if found is not None:
                # JSON has no line ends, so its data is one line.
                await _send(send, b"id: answer\nevent: answer\ndata: " + found + b"\n\n")
                return
            await _send(send, b": here\n\n")
        await _send(send, b"id: expired\nevent: expired\ndata: {}\n\n")


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
