"""Who may use what: the roles that the application declares, and those that a caller has."""

import asyncio
import time
from http import HTTPStatus

from starlette.types import Scope

from penstock.core.graph.gateway import Gateway
from penstock.serving.http.guard import caller_of, refused_access, still_calling
from penstock.serving.http.problems import Problem

__all__ = ["LOOK_SECONDS", "require_right", "until_refused"]

LOOK_SECONDS = 1.0
"""How soon an open answer ends behind the end of its caller's token, or of their right."""


def require_right(scope: Scope, gateway: Gateway, name: str) -> None:
    """Raise a Problem ``caller.not-allowed``, with an audit line, unless the caller may use it."""
    caller = caller_of(scope)
    if caller.roles is None or not gateway.roles:
        return
    if any(gateway.may(role, name) for role in caller.roles):
        return
    problem = Problem(
        HTTPStatus.FORBIDDEN, "caller.not-allowed", f"no role of this caller may use {name!r}"
    )
    refused_access(scope, problem)
    raise problem


async def until_refused(scope: Scope, gateway: Gateway, *names: str) -> Problem:
    """Wait until the caller of an open answer may not go on; return why, with an audit line.

    Their token was revoked or has expired, or they have no role any more that may use the names.
    """
    while True:
        expires = caller_of(scope).expires_at
        left = LOOK_SECONDS if expires is None else expires - time.time()
        await asyncio.sleep(min(LOOK_SECONDS, max(0.0, left)))
        if still_calling(scope) is None:
            problem = Problem(
                HTTPStatus.UNAUTHORIZED, "caller.unknown", "the token is not valid any more"
            )
            refused_access(scope, problem)
            return problem
        try:
            for name in names:
                require_right(scope, gateway, name)
        except Problem as problem:
            return problem
