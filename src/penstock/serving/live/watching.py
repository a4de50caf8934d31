"""Whether the caller of an open connection may still follow, and the same rows as before."""

import asyncio
import time
from http import HTTPStatus

from starlette.types import Scope

from penstock.serving.http.guard import caller_of, still_calling
from penstock.serving.http.problems import Problem
from penstock.serving.live.session import Session

__all__ = ["unknown", "watch"]

_LOOK_SECONDS = 1.0


async def watch(scope: Scope, session: Session) -> None:
    """Move a session to other rows when the caller's claims change.

    Raise a Problem ``caller.unknown`` as soon as the token is not valid any more.
    """
    while True:
        known = caller_of(scope)
        seconds = _LOOK_SECONDS
        if known.expires_at is not None:
            seconds = min(seconds, max(0.0, known.expires_at - time.time()))
        await asyncio.sleep(seconds)
        if (now := still_calling(scope)) is None:
            raise unknown("the token is not valid any more")
        if now != known:
            session.move()


def unknown(text: str) -> Problem:
    """Return the refusal of a token."""
    return Problem(HTTPStatus.UNAUTHORIZED, "caller.unknown", text)
