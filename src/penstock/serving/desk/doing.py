"""Who may do something at a desk, rather than only ask: those who have its key, on its own page."""

import secrets
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request

from penstock.serving.http.bodies import JSON, Bodies, content_type
from penstock.serving.http.guard import refused_access
from penstock.serving.http.problems import Problem

__all__ = ["read_body", "require_key"]

BODY_BYTES = 1 << 20
"""The most bytes of what is sent with an action."""
_SILENCE_SECONDS = 10.0
_BODIES = Bodies(body_bytes=BODY_BYTES, silence_seconds=_SILENCE_SECONDS)


def require_key(request: Request, key: str) -> None:
    """Refuse whoever has not the key, and pages of others; both leave an audit line."""
    if problem := _refusal(request, key):
        refused_access(request.scope, problem)
        raise problem


def _refusal(request: Request, key: str) -> Problem | None:
    headers = request.headers
    if not key:
        return Problem(
            HTTPStatus.FORBIDDEN,
            "console.reads-only",
            "this console only reads",
            allowed="http.console_writes = 'on' in penstock.toml lets it write",
        )
    origin = headers.get("origin")
    own = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
    if not own or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return Problem(
            HTTPStatus.FORBIDDEN, "origin.foreign", "pages of other origins may do nothing here"
        )
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secrets.compare_digest(given.encode(), key.encode()):
        return Problem(
            HTTPStatus.UNAUTHORIZED,
            "console.key",
            "this needs the key of the run",
            allowed="open the link that the run prints, or send Authorization: Bearer KEY",
            headers={"WWW-Authenticate": 'Bearer realm="penstock"'},
        )
    return None


async def read_body(request: Request) -> dict[str, Any]:
    """Return the JSON object that is sent with an action."""
    if content_type(request) != JSON:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "body.type", "the body is no JSON", allowed=JSON
        )
    try:
        found = msgspec.json.decode(await _BODIES.whole(request))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(
            HTTPStatus.BAD_REQUEST, "body.wrong", f"the body is no JSON: {error}"
        ) from error
    if not isinstance(found, dict):
        raise Problem(HTTPStatus.BAD_REQUEST, "body.wrong", "the body must be a JSON object")
    return found
