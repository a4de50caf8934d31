"""What every request passes before it is looked at: host, caller, and how many calls they have.

What is raised below becomes a problem document. A refusal for want of a right leaves an audit line.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.core.printable import printable
from penstock.errors import PenstockError, TransientError
from penstock.serving.http.callers import Caller, Callers
from penstock.serving.http.problems import Problem, problem_of

__all__ = ["AUDIT", "LOOPBACK_NAMES", "OPEN_PATHS", "Guard", "caller_of", "refused_access"]

AUDIT = logging.getLogger("penstock.serving.audit")
LOG = logging.getLogger("penstock.serving")

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
OPEN_PATHS = frozenset({"/v1/health"})
"""What needs no token: it tells only whether the gateway is well."""
_CALLER = "penstock.caller"


def caller_of(scope: Scope) -> Caller:
    """Return who sent a request that has passed the guard."""
    found: Caller = scope[_CALLER]
    return found


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
        public: Callable[[str], bool] = lambda _path: False,
    ) -> None:
        self._app = app
        self._callers = callers
        self._names = LOOPBACK_NAMES | {name.lower() for name in names}
        self._most = calls_per_caller
        self._public = public
        self._under_way: Counter[str] = Counter()
        self.refused = 0
        """How many requests were refused for want of a right."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
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
        # Callers without tokens are told apart by where they come from.
        who = caller.name if caller.roles is not None else str((scope.get("client") or ("",))[0])
        if self._under_way[who] >= self._most:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "caller.too-many",
                f"{self._most} requests of this caller are under way",
                retry_after=1,
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
        caller = self._callers.find(headers.get("authorization"))
        if caller is not None:
            return caller
        if scope["path"] in OPEN_PATHS or self._public(scope["path"]):
            return Caller("unknown", frozenset())
        problem = Problem(
            HTTPStatus.UNAUTHORIZED,
            "caller.unknown",
            "send a token: Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": 'Bearer realm="penstock"'},
        )
        self.refused += 1
        refused_access(scope, problem)
        raise problem

    async def _refuse(
        self, problem: Problem, scope: Scope, receive: Receive, send: Send, *, begun: bool
    ) -> None:
        if begun:
            # The head of an answer is on its way: what ends it early is all that can be said.
            raise ConnectionAbortedError(problem.detail)
        await problem.response()(scope, receive, send)


def _host(text: str) -> str:
    try:
        return (urlsplit(f"//{text}").hostname or "").rstrip(".").lower()
    except ValueError:
        return ""
