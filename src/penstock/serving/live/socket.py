"""``/v1/live``: live queries over a WebSocket."""

import asyncio
from contextlib import suppress
from http import HTTPStatus

import msgspec

from penstock.core.feeds.messages import Authenticated, Pong, encoded
from penstock.core.feeds.requests import (
    Authenticate,
    Ping,
    Subscribe,
    Unsubscribe,
    read_request,
)
from penstock.errors import DataError
from penstock.serving.http.conversation import Conversation
from penstock.serving.http.guard import authenticate
from penstock.serving.http.problems import Problem
from penstock.serving.live.offered import Offered
from penstock.serving.live.session import Session
from penstock.serving.live.watching import unknown, watch

__all__ = ["LiveSocket"]


class LiveSocket:
    """One conversation about live queries."""

    def __init__(
        self, conversation: Conversation, offered: Offered, *, heartbeat_seconds: float
    ) -> None:
        self._conversation = conversation
        self._offered = offered
        self._loop = asyncio.get_running_loop()
        self._draining: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._session = Session(
            offered,
            conversation.scope,
            conversation.tell,
            heartbeat_seconds=heartbeat_seconds,
            on_full=self._full,
        )

    async def serve(self) -> None:
        """Answer until the client goes, may not call any more, or the gateway is to stop."""
        conversation = self._conversation
        conversation.last_members = {"type": "error"}
        self._session.begin()
        several = [
            self._loop.create_task(each)
            for each in (self._listen(), watch(conversation.scope, self._session))
        ]
        try:
            done, _ = await asyncio.wait(several, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._session.close()
            if self._draining is not None:
                several.append(self._draining)
            for task in several:
                task.cancel()
            for task in several:
                with suppress(asyncio.CancelledError, Problem, DataError):
                    await task
        if conversation.leaving:
            text = "the gateway stops: connect again, with tokens"
            self._session.refuse(Problem(HTTPStatus.SERVICE_UNAVAILABLE, "live.closed", text))

    async def _listen(self) -> None:
        while (message := await self._conversation.hear()) is not None:
            self._take(message)
            del message  # an idle client holds nothing
            while self._session.is_full:  # nothing is read from one who does not read
                self._room.clear()
                await self._room.wait()

    def _take(self, message: str | bytes) -> None:
        try:
            request = read_request(message)
        except DataError as error:
            if not (name := _name_of(message)):
                raise
            self._session.refuse(error, name)
            return
        if isinstance(request, Subscribe):
            self._session.subscribe(request)
        elif isinstance(request, Unsubscribe):
            self._session.unsubscribe(request.id)
        elif isinstance(request, Ping):
            self._session.say(encoded(Pong()))
        else:
            self._authenticate(request)

    def _authenticate(self, request: Authenticate) -> None:
        caller = authenticate(self._conversation.scope, request.token)
        if caller is None:
            raise unknown("this token is not valid")
        self._session.say(encoded(Authenticated(caller.name)))
        self._session.move()

    def _full(self) -> None:
        if self._draining is None:
            self._draining = self._loop.create_task(self._drain())

    async def _drain(self) -> None:
        await self._conversation.drained()
        self._draining = None
        self._session.go_on()
        self._room.set()


def _name_of(message: str | bytes) -> str:
    """Return which subscription a message is of that cannot be read as a whole."""
    with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
        found = msgspec.json.decode(message)
        name = found.get("id") if isinstance(found, dict) else None
        if isinstance(name, str) and 0 < len(name) <= 64:  # noqa: PLR2004 - as requests have it
            return name
    return ""
