"""``/v1/sql/changes``, ``/v1/sql/socket``, ``/v1/states/.../changes``: answers that are watched."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, TypeGuard

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from penstock.core.graph.gateway import Gateway
from penstock.core.settings.settings import ServingSettings
from penstock.core.sql.access import Access
from penstock.core.sql.budget import QueryError
from penstock.core.sql.plan import Plan
from penstock.serving.http.asked import read_query
from penstock.serving.http.conversation import Conversation
from penstock.serving.http.problems import Problem
from penstock.serving.http.rights import require_right, until_refused
from penstock.serving.relations.catalog import Relation, StateRelation
from penstock.serving.relations.running import Asked, Found, Queries
from penstock.serving.relations.watching import Question, Round, TooManyRowsError, Watched, Watches
from penstock.serving.sql.answers import about
from penstock.serving.sql.push import Shape, WatchStream, hold_conversation
from penstock.serving.sql.routes import SqlRoutes, query_problem

__all__ = ["WatchRoutes"]


class WatchRoutes:
    """Tells what changes in the answers of queries, and in states."""

    def __init__(
        self,
        gateway: Gateway,
        settings: ServingSettings,
        queries: Queries,
        *,
        sql: SqlRoutes,
        stop: asyncio.Event,
    ) -> None:
        self._gateway = gateway
        self._settings = settings
        self._queries = queries
        self._sql = sql
        self._stop = stop
        self.watches = Watches(
            most=settings.watches, interval=settings.watch_interval.total_seconds()
        )

    async def query(self, request: Request) -> Response:
        """Tell the rows of a query, and then what changes in them, as server-sent events."""
        return await self._stream(request, *self._query(request))

    async def state(self, request: Request) -> Response:
        """Tell the values of a key or a prefix, and then what changes in them."""
        name = f"{request.path_params['service']}.{request.path_params['state']}"
        relation = self._queries.relations.get(name)
        if not _is_state(relation):
            known = ", ".join(filter(None, map(_state_name, self._queries.relations.values())))
            text = f"this gateway shows no state {name!r}"
            raise Problem(HTTPStatus.NOT_FOUND, "state.unknown", text, allowed=known)
        require_right(request.scope, self._gateway, relation.right)
        asked = read_query(request)
        access, of = Access(), ""
        if "key" in asked:
            access, of = Access(keys=(_bytes(asked["key"]),)), f"k{asked['key']}"
        elif asked.get("prefix"):
            prefix = _bytes(asked["prefix"])
            access, of = Access(start=prefix, end=_behind(prefix)), f"p{asked['prefix']}"

        async def ask() -> Round:
            return self._round(await self._queries.values(relation, access))

        async def probe() -> Any:
            return None if access.keys is not None else await self._queries.positions(relation)

        question = Question(ask=ask, probe=probe, identity=(0,))
        watched = self.watches.watched(f"state {name} {of}", question)
        return await self._stream(request, watched, _key_and_value, [relation.right])

    async def socket(self, conversation: Conversation) -> None:
        """Tell the same as ``query`` over a WebSocket."""
        connection = HTTPConnection(conversation.scope)
        watched, shape, rights = self._query(connection)
        watcher = await _watching(watched, _last_of(connection))
        try:
            await conversation.accept()
        except BaseException:
            watched.leave(watcher)
            raise
        refused = until_refused(conversation.scope, self._gateway, *rights)
        await hold_conversation(conversation, watched, watcher, shape, refused=refused)

    def _query(self, request: HTTPConnection) -> tuple[Watched, Shape, list[str]]:
        text = self._sql.text_in_address(request)
        plan = self._sql.plan(request, text)
        names = [column.name for column in plan.columns]

        def shape(row: tuple[Any, ...]) -> dict[str, Any]:
            return {"value": dict(zip(names, row, strict=True))}

        rights = [self._queries.relations[reading.name].right for reading in plan.readings]
        return self.watches.watched(f"sql {text}", self._question(plan)), shape, rights

    def _question(self, plan: Plan) -> Question:
        asked = Asked(plan=plan, at_least={}, wait_seconds=0.0, require=lambda _: None)

        async def ask() -> Round:
            return self._round(await self._queries.answer(asked))

        async def probe() -> Any:
            return await self._queries.probe(plan)

        return Question(ask=ask, probe=probe, identity=plan.identity)

    def _round(self, found: Found) -> Round:
        told = {name: each for name, each in about(found).items() if name in _TOLD}
        too_many = found.more or len(found.rows) > self._settings.rows
        return Round(rows=found.rows, about=told, more=too_many)

    async def _stream(
        self, request: Request, watched: Watched, shape: Shape, rights: Sequence[str]
    ) -> Response:
        watcher = await _watching(watched, _last_of(request))
        refused = until_refused(request.scope, self._gateway, *rights)
        return WatchStream(watched, watcher, shape, stop=self._stop, refused=refused)


def _state_name(relation: Relation) -> str:
    return relation.name if _is_state(relation) else ""


def _is_state(relation: Relation | None) -> TypeGuard[StateRelation]:
    """Return whether it is a declared state; the windows of a table are asked for in SQL."""
    return isinstance(relation, StateRelation) and relation.right == relation.service.name


_TOLD = frozenset({"relations", "stale_seconds"})


async def _watching(watched: Watched, last: str) -> Any:
    try:
        return await watched.watch(last)
    except TooManyRowsError as error:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            error.code,
            error.message,
            allowed="a key, a prefix, or at most serving.rows rows",
        ) from error
    except QueryError as error:
        raise query_problem(error) from error


def _last_of(request: HTTPConnection) -> str:
    """Return the event to go on behind: as browsers send it, or in the address."""
    return request.headers.get("last-event-id") or read_query(request).get("last", "")


def _key_and_value(row: tuple[Any, ...]) -> dict[str, Any]:
    return {"key": row[0], "value": row[1]}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _behind(prefix: bytes) -> bytes | None:
    """Return the first bytes behind all those that begin so."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None
