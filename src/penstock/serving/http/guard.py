"""What every request passes before it is looked at: host, caller, and how many calls they have.

A WebSocket passes the same before it is accepted, and its origin is looked at: a browser sends it,
and asks nobody whether a page of a stranger may open one.

What is raised below becomes a problem document. A refusal for want of a right leaves an audit line.
"""

import base64
import logging
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from http import HTTPStatus
from math import ceil
from time import monotonic
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from websockets.frames import CloseCode

from penstock.core.printable import printable
from penstock.errors import PenstockError, TransientError
from penstock.serving.http.caller import UNKNOWN, Caller
from penstock.serving.http.callers import Callers
from penstock.serving.http.pace import Pace
from penstock.serving.http.problems import Problem, problem_of

__all__ = [
    "AUDIT",
    "LOOPBACK_NAMES",
    "OPEN_PATHS",
    "SUBPROTOCOL",
    "TOKEN_SUBPROTOCOL",
    "Guard",
    "authenticate",
    "caller_of",
    "refused_access",
    "still_calling",
]

AUDIT = logging.getLogger("penstock.serving.audit")
LOG = logging.getLogger("penstock.serving")

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
OPEN_PATHS = frozenset({"/v1/health"})
"""What needs no token: it tells only whether the gateway is well."""
SUBPROTOCOL = "penstock.v1"
"""What a client of a WebSocket offers, if it offers any subprotocol; a browser's must."""
TOKEN_SUBPROTOCOL = "penstock.token."  # noqa: S105 - what stands before one
"""Before a token in base64url, among the subprotocols that a page in a browser offers."""
_CALLER = "penstock.caller"
_CALLERS, _TOKEN = "penstock.callers", "penstock.authorization"


def caller_of(scope: Scope) -> Caller:
    """Return who sent a request that has passed the guard."""
    found: Caller = scope[_CALLER]
    return found


def still_calling(scope: Scope) -> Caller | None:
    """Return the caller of an open conversation as of now; None: the token is valid no more."""
    callers: Callers = scope[_CALLERS]
    caller = callers.find(scope[_TOKEN])
    if caller is not None:
        scope[_CALLER] = caller
    return caller


def authenticate(scope: Scope, token: str) -> Caller | None:
    """Let a conversation go on with another token; None: it is none, and the former one stays."""
    callers: Callers = scope[_CALLERS]
    caller = callers.find(f"Bearer {token}")
    if caller is not None:
        scope[_TOKEN], scope[_CALLER] = f"Bearer {token}", caller
    return caller


def refused_access(scope: Scope, problem: Problem) -> None:
    """Write the audit line of a refusal; it has no secret in it."""
    client = scope.get("client") or ("unknown", 0)
    caller = scope.get(_CALLER)
    AUDIT.warning(
        "refused %s %s from %s, caller %s: %s",
        scope.get("method", ""),
        printable(scope.get("path", ""), most=200),
        client[0],
        printable(caller.name) if caller is not None else "unknown",
        problem.code,
    )


class Guard:
    """Lets a request through to the application, or refuses it.

    ``names`` are the hosts that requests may name where no token is asked for: so a page in a
    browser cannot use a name that it has pointed here (DNS rebinding). ``public``
    says of a path whether it needs no token.
    """

    def __init__(
        self,
        app: ASGIApp,
        callers: Callers,
        *,
        names: Collection[str],
        calls_per_caller: int,
        calls_per_second: int = 0,
        public: Callable[[str], bool] = lambda _path: False,
        sockets_per_caller: int = 1,
        origins: Collection[str] = (),
    ) -> None:
        self._app = app
        self._callers = callers
        self._names = LOOPBACK_NAMES | {name.lower() for name in names}
        self._public = public
        self._origins = frozenset(origins)
        self._most = {"http": calls_per_caller, "websocket": sockets_per_caller}
        self._pace = Pace(calls_per_second, clock=monotonic)
        self._under_way: Counter[tuple[str, str]] = Counter()
        self.refused = 0
        """How many requests were refused for want of a right."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hold one conversation over a WebSocket."""
        if scope["type"] not in self._most:
            return
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._pass(scope, receive, sending)
        except ClientDisconnect:
            return
        except Problem as problem:
            await self._refuse(problem, scope, receive, send, begun=begun)
        except PenstockError as error:
            # What will pass is not written for each request: the reports say it.
            level = logging.INFO if isinstance(error, TransientError) else logging.WARNING
            LOG.log(level, "%s: %s", printable(scope.get("path", "")), error)
            await self._refuse(problem_of(error), scope, receive, send, begun=begun)
        except Exception:
            # A mistake of ours: the caller is told no more than that.
            LOG.exception("a request failed: %s", printable(scope.get("path", "")))
            failed = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the gateway failed")
            await self._refuse(failed, scope, receive, send, begun=begun)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        caller = self._admit(scope, headers)
        scope[_CALLER] = caller
        if scope["type"] == "websocket":
            self._admit_socket(scope, headers)
        # Callers without tokens are told apart by where they come from.
        nameless = caller.roles is None or caller is UNKNOWN
        name = str((scope.get("client") or ("",))[0]) if nameless else caller.name
        kind = scope["type"]
        if wait := self._pace.wait(name):
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "caller.too-often",
                "this caller calls too often",
                retry_after=ceil(wait),
            )
        who, most = (kind, name), self._most[kind]
        if self._under_way[who] >= most:
            what = "requests of this caller are under way"
            if kind == "websocket":
                what = "WebSockets of this caller are open"
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS, "caller.too-many", f"{most} {what}", retry_after=1
            )
        self._under_way[who] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way[who] -= 1
            if not self._under_way[who]:
                del self._under_way[who]

    def _admit(self, scope: Scope, headers: Headers) -> Caller:
        if len(headers.getlist("host")) > 1:
            raise Problem(HTTPStatus.BAD_REQUEST, "host.several", "a request names one host")
        if self._callers.open and _host(headers.get("host", "")) not in self._names:
            raise Problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                "host.unknown",
                "the host must be a name of this machine, or one of serving.names",
            )
        scope[_CALLERS], scope[_TOKEN] = self._callers, _authorization(scope, headers)
        caller = self._callers.find(scope[_TOKEN])
        if caller is not None:
            return caller
        if scope["path"] in OPEN_PATHS or self._public(scope["path"]):
            return UNKNOWN
        problem = Problem(
            HTTPStatus.UNAUTHORIZED,
            "caller.unknown",
            "send a token: Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": _challenge(scope[_TOKEN])},
        )
        self.refused += 1
        refused_access(scope, problem)
        raise problem

    def _admit_socket(self, scope: Scope, headers: Headers) -> None:
        """Refuse pages of strangers, and subprotocols that nobody speaks here."""
        origin = headers.get("origin")
        if origin is not None and not self._origins & {origin, "*"}:
            same = origin.partition("://")[2].lower() == headers.get("host", "").lower()
            if not same:
                problem = Problem(
                    HTTPStatus.FORBIDDEN,
                    "origin.unknown",
                    "this page may not open a WebSocket here",
                    allowed="pages of this gateway, and of serving.origins",
                )
                self.refused += 1
                refused_access(scope, problem)
                raise problem
        offered = scope.get("subprotocols")
        if offered and SUBPROTOCOL not in offered:
            raise Problem(
                HTTPStatus.BAD_REQUEST,
                "socket.protocol",
                "none of the subprotocols that are offered is spoken here",
                allowed=f"{SUBPROTOCOL}, or no subprotocol",
            )

    async def _refuse(
        self, problem: Problem, scope: Scope, receive: Receive, send: Send, *, begun: bool
    ) -> None:
        if begun and scope["type"] == "websocket":
            with suppress(OSError, RuntimeError):  # it has gone, or has been closed
                code = CloseCode.INTERNAL_ERROR
                await send({"type": "websocket.close", "code": code, "reason": problem.code})
            return
        if begun:
            # The head of an answer is on its way: what ends it early is all that can be said.
            raise ConnectionAbortedError(problem.detail)
        await problem.response()(scope, receive, send)


def _challenge(sent: str | None) -> str:
    """Return what tells a caller how to prove who they are (RFC 6750)."""
    asked = 'Bearer realm="penstock"'
    return asked if sent is None else f'{asked}, error="invalid_token"'


def _authorization(scope: Scope, headers: Headers) -> str | None:
    """Return the token of a request as its header has it.

    A page in a browser cannot send the header with a WebSocket. It sends the token as a subprotocol
    that is never chosen: it is in no URL, and so in no log of what was asked for.
    """
    given = headers.get("authorization")
    if given is not None or scope["type"] != "websocket":
        return given
    for offered in scope.get("subprotocols") or ():
        if offered.startswith(TOKEN_SUBPROTOCOL):
            text = offered.removeprefix(TOKEN_SUBPROTOCOL)
            try:
                token = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
            except ValueError:
                return None
            return f"Bearer {token}"
    return None


def _host(text: str) -> str:
    try:
        return (urlsplit(f"//{text}").hostname or "").rstrip(".").lower()
    except ValueError:
        return ""
