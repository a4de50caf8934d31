"""The route to a set of files: GET and HEAD, entity tags, and headers that make pages safe."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NoReturn

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

from penstock.serving.files.served import MOST_FILE_BYTES, Files, TooLarge
from penstock.serving.http.problems import Problem

__all__ = ["POLICY", "FileRoute"]

_DIRECTIVES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
POLICY = "; ".join(_DIRECTIVES)
"""What a page may do: run and load what this gateway serves, and talk to it; nothing else."""
_SAFETY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_ASK_AGAIN = "no-cache"
"""A browser may keep a file, and asks each time whether it is still the same."""


class FileRoute(BaseRoute):
    """Leads every path below ``under`` to the file of that name.

    ``wants`` says which of these names are meant at all; a path with another name is left to the
    routes that follow. ``under`` begins and ends with a slash.
    """

    def __init__(
        self, files: Files, *, under: str = "/", wants: Callable[[str], bool] = lambda _name: True
    ) -> None:
        self._files = files
        self._under = under
        self._wants = wants

    def has(self, path: str) -> bool:
        """Return whether a path leads here."""
        if not path.startswith(self._under):
            return path + "/" == self._under
        return self._wants(path.removeprefix(self._under))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for here."""
        reads = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        return (Match.FULL if reads and self.has(scope["path"]) else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> NoReturn:
        """Raise NoMatchFound: the route has no name."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = scope["path"]
        if not path.startswith(self._under):
            answer: Response = RedirectResponse(self._under, HTTPStatus.PERMANENT_REDIRECT)
        else:
            answer = await self._answer(path.removeprefix(self._under), Headers(scope=scope))
        await answer(scope, receive, send)

    async def _answer(self, name: str, headers: Headers) -> Response:
        try:
            found = await self._files.read(name)
        except TooLarge as error:
            text = f"the file has more than {MOST_FILE_BYTES} bytes"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "file.too-large", text) from error
        except OSError as error:
            text = "the file cannot be read, and the operator must see why"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "file.unreadable", text) from error
        if found is None:
            raise Problem(HTTPStatus.NOT_FOUND, "path.unknown", f"there is nothing at {name!r}")
        kept = {**_SAFETY, "ETag": found.etag, "Cache-Control": _ASK_AGAIN}
        if is_same(headers.get("if-none-match", ""), found.etag):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=kept)
        return Response(found.body, headers={**kept, "Content-Type": found.media_type})


def is_same(asked: str, etag: str) -> bool:
    """Return whether an ``If-None-Match`` names an entity tag."""
    return asked.strip() == "*" or etag in (
        each.strip().removeprefix("W/") for each in asked.split(",")
    )
