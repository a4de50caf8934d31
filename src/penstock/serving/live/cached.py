"""``GET /v1/live/result``: the result of a query, kept here and renewed by the same events.

The first request for a query has it followed; it stays followed for a minute after the last one. So
an answer is the result as the services know it, and costs them nothing.
"""

import asyncio
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from math import ceil
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.core.feeds.feed import Feed
from penstock.core.settings.settings import ServingSettings
from penstock.core.units import UnitError, duration
from penstock.serving.http.asked import read_query
from penstock.serving.http.bodies import JSON
from penstock.serving.http.problems import Problem
from penstock.serving.live.following import Following
from penstock.serving.live.offered import Offered

__all__ = ["MAX_STALE", "CachedResults"]

MAX_STALE = "5s"
"""How old an answer may be, unless the request says otherwise."""
_PARAMETERS = frozenset({"query", "live", "max_stale"})


class CachedResults:
    """Answers with results; for the event loop."""

    def __init__(self, offered: Offered, settings: ServingSettings) -> None:
        self._offered = offered
        self._wait_seconds = settings.wait_limit.total_seconds()
        self._most = settings.answer_bytes
        self._bodies: WeakKeyDictionary[Feed, tuple[int, bytes]] = WeakKeyDictionary()

    async def get(self, request: Request) -> Response:
        """Answer with a result and its entity tag, or that it has not changed."""
        parameters = read_query(request)
        if unknown := set(parameters) - _PARAMETERS:
            raise _wrong(f"there is no parameter {min(unknown)!r}")
        most_stale = _seconds(parameters.get("max_stale", MAX_STALE))
        following = self._offered.find(parameters.get("live", ""), request.scope)
        raw = msgspec.Raw(parameters.get("query", "{}").encode("utf-8", "surrogateescape"))
        query = self._offered.query(following, raw, request.scope)
        changed = asyncio.Event()
        wake = partial(changed.set)
        feed = following.join(query, wake)
        try:
            hit = feed.ready
            await self._wait(feed, changed)
            return self._answer(request, following, feed, hit=hit, most_stale=most_stale)
        finally:
            following.leave(feed, wake)

    async def _wait(self, feed: Feed, changed: asyncio.Event) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_seconds):
                while not (feed.ready or feed.too_large):
                    changed.clear()
                    await changed.wait()

    def _answer(
        self, request: Request, following: Following, feed: Feed, *, hit: bool, most_stale: float
    ) -> Response:
        if feed.too_large:
            raise self._too_large()
        stale = following.stale_seconds
        if not feed.ready or stale is None or stale > most_stale:
            known = feed.ready and stale is not None
            text = f"what is known is {stale:.1f}s old" if known else "the result is not known yet"
            unavailable = HTTPStatus.SERVICE_UNAVAILABLE
            raise Problem(unavailable, "live.unready", text, retry_after=1)
        tag = f'"{feed.token(feed.number)}"'
        headers = {
            "ETag": tag,
            "Age": str(ceil(stale)),
            "Cache-Control": "private, no-cache",
            "Vary": "Authorization",
            "X-Cache": "hit" if hit else "miss",
        }
        asked = request.headers.get("if-none-match", "")
        if tag in (each.strip().removeprefix("W/") for each in asked.split(",")):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(self._body(feed), media_type=JSON, headers=headers)

    def _body(self, feed: Feed) -> bytes:
        kept = self._bodies.get(feed)
        if kept is None or kept[0] != feed.number:
            if feed.size > self._most:
                raise self._too_large()
            found: dict[str, Any] = {
                "documents": feed.documents(),
                "ordered": feed.ordered,
                "positions": feed.positions,
                "token": feed.token(feed.number),
            }
            kept = self._bodies[feed] = (feed.number, msgspec.json.encode(found))
        return kept[1]

    def _too_large(self) -> Problem:
        return Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "live.too-large",
            f"the result has more than {self._most:,} bytes, or too many documents",
            allowed="a narrower query, or a limit",
        )


def _seconds(text: str) -> float:
    try:
        return duration(text).total_seconds()
    except UnitError as error:
        raise _wrong(f"max_stale: {error}") from None


def _wrong(text: str) -> Problem:
    allowed = ", ".join(sorted(_PARAMETERS))
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "live.message", text, allowed=allowed)
