"""``/v1/live/poll``: live queries by asking again and again."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Scope

from penstock.core.feeds.requests import Followed
from penstock.serving.http.bodies import JSON
from penstock.serving.http.problems import Problem
from penstock.serving.live.offered import Offered
from penstock.serving.live.session import Session

__all__ = ["LONGEST_WAIT_SECONDS", "polled"]

LONGEST_WAIT_SECONDS = 30.0
_NOTHING = (b'{"type":"resumed"', b'{"type":"up-to-date"')


class _Collected:
    """The messages of one answer."""

    def __init__(self, most: int) -> None:
        self.messages: list[bytes] = []
        self.told = asyncio.Event()
        self.too_large = False
        self._most = most

    def tell(self, message: bytes) -> bool:
        """Take a message, unless there are too many bytes of them."""
        self._most -= len(message)
        if self._most < 0:
            self.too_large = True
            self.told.set()
            return False
        self.messages.append(message)
        if not message.startswith(_NOTHING):
            self.told.set()
        return True


async def polled(
    several: Sequence[Followed],
    offered: Offered,
    scope: Scope,
    *,
    seconds: float,
    answer_bytes: int,
    stop: asyncio.Event,
) -> Response:
    """Return the answer, as soon as there is something to tell."""
    collected = _Collected(answer_bytes)
    session = Session(offered, scope, collected.tell, heartbeat_seconds=0.0, on_full=lambda: None)
    stopping = asyncio.create_task(stop.wait())
    telling = asyncio.create_task(collected.told.wait())
    try:
        for each in several:
            session.subscribe(each)
        await asyncio.wait(
            (stopping, telling), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        while session.is_busy:  # noqa: ASYNC110 - what belongs to it comes at once
            await asyncio.sleep(0)
        if collected.too_large:
            text = f"the answer has more than {answer_bytes:,} bytes"
            allowed = "a narrower query, a limit, or a WebSocket"
            large = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            raise Problem(large, "live.too-large", text, allowed=allowed)
        messages = [*collected.messages, session.up_to_date()]
        body = b'{"messages":[' + b",".join(messages) + b"]}"
        return Response(body, media_type=JSON, headers={"Cache-Control": "no-store"})
    finally:
        session.close()
        for task in (stopping, telling):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
