"""Who may use what: the roles that the application declares, and those that a caller has."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Never

from starlette.types import Scope

from penstock.core.graph.gateway import Gateway
from penstock.serving.http.caller import ANYBODY
from penstock.serving.http.guard import caller_of, refused_access, still_calling
from penstock.serving.http.problems import Problem

__all__ = ["LOOK_SECONDS", "require_right", "require_still", "until_refused", "while_allowed"]

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


def require_still(scope: Scope, gateway: Gateway, *names: str) -> None:
    """Raise a Problem, with an audit line, where the caller of an open answer may not go on.

    Their token was revoked or has expired, or they have no role any more that may use the names.
    """
    if still_calling(scope) is None:
        problem = Problem(
            HTTPStatus.UNAUTHORIZED, "caller.unknown", "the token is not valid any more"
        )
        refused_access(scope, problem)
        raise problem
    for name in names:
        require_right(scope, gateway, name)


async def until_refused(scope: Scope, gateway: Gateway, *names: str) -> Problem:
    """Wait until the caller of an open answer may not go on; return why, with an audit line."""
    while True:
        expires = caller_of(scope).expires_at
        left = LOOK_SECONDS if expires is None else expires - time.time()
        await asyncio.sleep(min(LOOK_SECONDS, max(0.0, left)))
        try:
            require_still(scope, gateway, *names)
        except Problem as problem:
            return problem


async def while_allowed(
    doing: Coroutine[Any, Any, None], scope: Scope, gateway: Gateway, *names: str
) -> None:
    """Do something for as long as the caller may; then end it, and raise the Problem."""
    if caller_of(scope) is ANYBODY:  # it always may, and an idle connection has no second task
        await doing
        return
    task = asyncio.ensure_future(doing)
    refused = asyncio.ensure_future(_raise_refusal(scope, gateway, names))
    try:
        done, _ = await asyncio.wait((task, refused), return_when=asyncio.FIRST_COMPLETED)
        await (task if task in done else refused)
    finally:
        for each in (task, refused):
            each.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await each


async def _raise_refusal(scope: Scope, gateway: Gateway, names: tuple[str, ...]) -> Never:
    raise await until_refused(scope, gateway, *names)
