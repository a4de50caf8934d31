"""The ASGI application of a gateway: which path leads where."""

from collections.abc import Callable, Collection, Iterable
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.serving.http.bodies import JSON
from penstock.serving.http.problems import Problem

__all__ = ["Health", "make_routes", "with_origins"]

Health = Callable[[], dict[str, Any]]


def make_routes(document: dict[str, Any], health: Health, routes: Collection[BaseRoute]) -> ASGIApp:
    """Return what sends each request to its place; what has none is a Problem."""
    described = msgspec.json.encode(document)

    async def openapi(request: Request) -> Response:
        del request
        return Response(described, media_type=JSON)

    async def tell_health(request: Request) -> Response:
        del request
        found = health()
        status = HTTPStatus.OK if found["healthy"] else HTTPStatus.SERVICE_UNAVAILABLE
        return Response(msgspec.json.encode(found), status_code=status, media_type=JSON)

    router = Router(
        [
            Route("/v1/health", tell_health, methods=["GET"]),
            Route("/v1/openapi.json", openapi, methods=["GET"]),
            *routes,
        ],
        default=_unknown,
        redirect_slashes=False,
    )

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = router  # so that it raises what it refuses, rather than answering in text
        try:
            await router(scope, receive, send)
        except HTTPException as error:
            raise _problem(scope, error, router.routes) from error

    return routed


def with_origins(app: ASGIApp, origins: Collection[str]) -> ASGIApp:
    """Let the pages of some origins use the gateway from a browser."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=[*origins],
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Prefer"],
        expose_headers=["Retry-After", "Idempotency-Replayed", "Content-Location", "Location"],
    )


async def _unknown(scope: Scope, receive: Receive, send: Send) -> None:
    del receive, send
    raise Problem(
        HTTPStatus.NOT_FOUND,
        "path.unknown",
        f"there is nothing at {scope['path']}",
        allowed="/v1/openapi.json tells what there is",
    )


def _problem(scope: Scope, error: HTTPException, routes: Iterable[BaseRoute]) -> Problem:
    """Return what the router refuses: a method. It knows those of one route, a path has several."""
    methods = {
        method
        for route in routes
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    code = "method.unknown" if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED else "request"
    headers = {"Allow": ", ".join(sorted(methods))}
    detail = f"{scope['method']} is not for {scope['path']}"
    return Problem(error.status_code, code, detail, headers=headers)
