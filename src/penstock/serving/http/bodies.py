"""Bodies of requests: bounded in size, in lines, and in the time that a client may be silent."""

import asyncio
import re
from collections.abc import AsyncGenerator
from functools import cache
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request

from penstock.serving.http.problems import Problem

__all__ = ["JSON", "NDJSON", "Bodies", "Line", "content_type", "single_header"]

JSON = "application/json"
NDJSON = "application/x-ndjson"

_DRAINED_BYTES = 32 << 20
"""A body that is too large is read to its end, and thrown away, unless it is larger than this."""

_CHARSET = re.compile(r"charset\s*=\s*\"?([^\s;\"]*)")
_UTF_8 = frozenset({"utf-8", "utf8", "us-ascii"})

Line = tuple[int, bytes | None]
"""The number of a line, from 1, and what it holds; None: it is too long."""


def content_type(request: Request) -> str:
    """Return the media type of a body, which must be one that is taken.

    A page of a stranger cannot send these from a browser without being asked for its origin.
    """
    kind, _, more = (single_header(request, "content-type") or "").partition(";")
    given = kind.strip().lower()
    if given in (JSON, NDJSON):
        encoding = (single_header(request, "content-encoding") or "identity").strip().lower()
        charset = _CHARSET.search(more.lower())
        if encoding != "identity" or (charset is not None and charset[1] not in _UTF_8):
            raise Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "body.encoding",
                f"the body is encoded: {encoding if charset is None else charset[1]}",
                allowed="UTF-8, as it is, without a Content-Encoding",
            )
        return given
    raise Problem(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "body.type",
        f"the body is {given or 'of no type'}",
        allowed=f"{JSON} or {NDJSON}",
    )


def single_header(request: Request, name: str) -> str | None:
    """Return a header; None: it is not there. Problem ``header.several``: nobody knows which."""
    wanted = _on_the_wire(name)
    found = [value for each, value in request.scope["headers"] if each == wanted]
    if len(found) > 1:
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "header.several",
            f"the request has {len(found)} headers {name}",
            allowed="one",
        )
    return found[0].decode("latin-1") if found else None


@cache
def _on_the_wire(name: str) -> bytes:
    return name.lower().encode()


class Bodies:
    """Reads bodies within limits."""

    def __init__(self, *, body_bytes: int, silence_seconds: float) -> None:
        self._most = body_bytes
        self._silence = silence_seconds

    async def whole(self, request: Request) -> bytes:
        """Return a body; 413 where it is too large, 408 where it does not come."""
        said = request.headers.get("content-length", "")
        large = said.isdecimal() and int(said) > self._most
        if large and int(said) > _DRAINED_BYTES:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._silence) as silence:
                more = True
                while more and size <= _DRAINED_BYTES:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    chunk, more = message.get("body", b""), message.get("more_body", False)
                    size += len(chunk)
                    # Whoever is cut off while sending may never read why.
                    large = large or size > self._most
                    if large:
                        parts.clear()
                    else:
                        parts.append(chunk)
                    if more:
                        silence.reschedule(asyncio.get_running_loop().time() + self._silence)
        except TimeoutError:
            raise self._slow() from None
        if large:
            raise self._too_large()
        return b"".join(parts)

    async def lines(self, request: Request, *, most: int) -> AsyncGenerator[list[Line], None]:
        """Yield the lines of a body as they come, some at a time, without the empty ones.

        ``most`` bounds a line; the rest of a longer one is read and thrown away.
        """
        number, rest, skipping = 0, b"", False
        async for chunk in self._chunks(request):
            whole = (rest + chunk).split(b"\n")
            rest = whole.pop()
            if skipping and whole:
                whole[0], skipping = b"", False
            found: list[Line] = [
                (at, line if len(line) <= most else None)
                for at, line in enumerate(whole, number + 1)
                if line.strip()
            ]
            number += len(whole)
            if len(rest) > most:
                if not skipping:
                    found.append((number + 1, None))
                skipping, rest = True, b""
            if found:
                yield found
        if rest.strip() and not skipping:
            yield [(number + 1, rest if len(rest) <= most else None)]

    async def _chunks(self, request: Request) -> AsyncGenerator[bytes, None]:
        stream = request.stream()
        while True:
            try:
                async with asyncio.timeout(self._silence):
                    chunk = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise self._slow() from None
            if chunk:
                yield chunk

    def _slow(self) -> Problem:
        return Problem(
            HTTPStatus.REQUEST_TIMEOUT,
            "body.slow",
            f"nothing of the body came for {self._silence:g}s",
            headers={"Connection": "close"},
        )

    def _too_large(self) -> Problem:
        return Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "body.too-large",
            f"the body has more than {self._most} bytes",
            allowed=f"{self._most} bytes, or a stream of any length as {NDJSON}",
            headers={"Connection": "close"},
        )
