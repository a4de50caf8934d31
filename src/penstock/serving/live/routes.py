"""The paths of live queries."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from penstock.core.feeds.requests import Followed, read_poll, read_several, wait_seconds
from penstock.core.settings.settings import ServingSettings
from penstock.serving.http.bodies import Bodies, content_type
from penstock.serving.http.conversation import Conversation
from penstock.serving.live.offered import Offered
from penstock.serving.live.poll import LONGEST_WAIT_SECONDS, polled
from penstock.serving.live.socket import LiveSocket
from penstock.serving.live.stream import LiveStream, read_tokens

__all__ = ["LiveRoutes"]


_MOST_NUMBERED = 20
"""With more subscriptions, only who cannot read the tokens of messages gets all of them in each."""


class LiveRoutes:
    """Three ways to follow live queries: a socket, a stream of events, and polls."""

    def __init__(self, offered: Offered, settings: ServingSettings, *, stop: asyncio.Event) -> None:
        self._offered = offered
        self._settings = settings
        self._stop = stop
        self._heartbeat = settings.heartbeat.total_seconds()
        self._bodies = Bodies(
            body_bytes=settings.message_bytes,
            silence_seconds=settings.silence_timeout.total_seconds(),
        )

    async def converse(self, conversation: Conversation) -> None:
        """Hold a conversation over a WebSocket."""
        await conversation.accept()
        socket = LiveSocket(conversation, self._offered, heartbeat_seconds=self._heartbeat)
        await socket.serve()

    async def get_events(self, request: Request) -> Response:
        """Answer with a stream of events to what the address asks for."""
        several = read_several(request.query_params.getlist("subscribe"))
        return self._stream(request, several)

    async def post_events(self, request: Request) -> Response:
        """Answer with a stream of events to what the body asks for."""
        content_type(request)
        found = read_poll(await self._bodies.whole(request))
        return self._stream(request, found.subscribe)

    async def poll(self, request: Request) -> Response:
        """Answer as soon as there is something to tell."""
        content_type(request)
        asked = read_poll(await self._bodies.whole(request))
        return await polled(
            asked.subscribe,
            self._offered,
            request.scope,
            seconds=wait_seconds(asked.wait, most=LONGEST_WAIT_SECONDS),
            answer_bytes=self._settings.answer_bytes,
            stop=self._stop,
        )

    def _stream(self, request: Request, several: Sequence[Followed]) -> Response:
        tokens = read_tokens(request.headers.get("last-event-id", ""))
        for each in several:
            each.resume = tokens.get(each.id, each.resume)
        return LiveStream(
            several,
            self._offered,
            heartbeat_seconds=self._heartbeat,
            unread_bytes=self._settings.unread_bytes,
            numbered=request.method == "GET" or len(several) <= _MOST_NUMBERED,
            stop=self._stop,
        )
