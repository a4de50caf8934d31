"""``GET`` and ``POST /v1/sql``: a query in, its rows out, with positions and age."""

import asyncio
from contextlib import suppress
from http import HTTPStatus

import msgspec
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response

from penstock.core.expression.fault import Fault, FaultError
from penstock.core.graph.gateway import Gateway
from penstock.core.settings.settings import ServingSettings
from penstock.core.sql.budget import QueryError
from penstock.core.sql.plan import Plan
from penstock.core.sql.planner import plan_query, relations_of
from penstock.serving.http.asked import Freshness, read_freshness, read_query
from penstock.serving.http.bodies import JSON, Bodies, content_type
from penstock.serving.http.problems import Problem
from penstock.serving.http.rights import require_right
from penstock.serving.relations.catalog import schemas
from penstock.serving.relations.running import Asked, Found, Queries
from penstock.serving.sql.answers import chosen_form

__all__ = ["PATH", "SqlRoutes", "faults_problem", "query_problem"]

PATH = "/v1/sql"


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    query: str


_BODY = msgspec.json.Decoder(_Body)


class SqlRoutes:
    """Answers queries over what a gateway shows, as far as the caller may."""

    def __init__(self, gateway: Gateway, settings: ServingSettings, queries: Queries) -> None:
        self._gateway = gateway
        self._settings = settings
        self._queries = queries
        self._bodies = Bodies(
            body_bytes=settings.body_bytes,
            silence_seconds=settings.silence_timeout.total_seconds(),
        )

    async def get(self, request: Request) -> Response:
        """Answer a query that stands in the address."""
        return await self._answer(request, self.text_in_address(request))

    def text_in_address(self, request: HTTPConnection) -> str:
        """Return the query that stands in the address; else a Problem."""
        text = read_query(request).get("query", "")
        if text:
            return text
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "query.value",
            "query: it is missing",
            path="query",
            allowed="one SELECT",
        )

    async def post(self, request: Request) -> Response:
        """Answer a query that is the body: ``{"query": "select ..."}``."""
        if content_type(request) != JSON:
            raise Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "body.type",
                "a query is no list of lines",
                allowed=JSON,
            )
        body = await self._bodies.whole(request)
        try:
            text = _BODY.decode(body).query
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Problem(
                HTTPStatus.BAD_REQUEST,
                "query.body",
                f"the body is no query: {error}",
                allowed='{"query": "select ..."}',
            ) from error
        return await self._answer(request, text)

    def plan(self, request: HTTPConnection, text: str) -> Plan:
        """Return the plan of a query that the caller may ask; else a Problem."""
        relations = self._queries.relations
        try:
            named = relations_of(text)
        except FaultError as error:
            raise faults_problem((error.fault,), text) from error
        # Before anything is told of their columns.
        for name in dict.fromkeys(named):
            if name in relations:
                require_right(request.scope, self._gateway, relations[name].right)
        found = plan_query(text, schemas(relations))
        if isinstance(found, Plan):
            return found
        raise faults_problem(found, text)

    async def _answer(self, request: Request, text: str) -> Response:
        form = chosen_form(request)
        fresh = read_freshness(request, self._settings)
        plan = self.plan(request, text)
        self._require_topics(plan, fresh)
        asked = Asked(
            plan=plan,
            at_least=fresh.at_least,
            wait_seconds=fresh.wait_seconds,
            require=fresh.require,
            max_stale_seconds=fresh.max_stale_seconds,
            standby=True,
        )
        found = await _unless_gone(request, self._queries, asked)
        return form(found)

    def _require_topics(self, plan: Plan, fresh: Freshness) -> None:
        """Refuse to wait for offsets that no relation of the query will ever have."""
        relations = self._queries.relations
        known = {topic for reading in plan.readings for topic in relations[reading.name].topics}
        fresh.require_topics(known)


async def _unless_gone(request: Request, queries: Queries, asked: Asked) -> Found:
    """Return the answer, unless whoever asks hangs up before it is there."""
    answering = asyncio.create_task(queries.answer(asked))
    leaving = asyncio.create_task(_hung_up(request))
    try:
        await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise ClientDisconnect
        return answering.result()
    except QueryError as error:
        raise query_problem(error) from error
    finally:
        for task in (answering, leaving):
            task.cancel()
        for task in (answering, leaving):
            with suppress(asyncio.CancelledError, Exception):
                await task


async def _hung_up(request: Request) -> None:
    """Wait until the caller has gone; what is left of a body is of no interest."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def query_problem(error: QueryError) -> Problem:
    """Return the refusal of a query that takes too much."""
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, error.code, error.message, allowed=error.hint)


def faults_problem(faults: tuple[Fault, ...], text: str) -> Problem:
    """Return the refusal of a query: each mistake with its place, the first one in words."""
    first = faults[0]
    return Problem(
        HTTPStatus.BAD_REQUEST,
        first.code,
        f"{first.message}, at {first.start + 1}",
        allowed=first.hint,
        errors=[
            {
                "code": fault.code,
                "detail": fault.message,
                "start": fault.start,
                "end": fault.end,
                "line": text.count("\n", 0, fault.start) + 1,
                "column": fault.start - (text.rfind("\n", 0, fault.start) + 1) + 1,
                **({"allowed": fault.hint} if fault.hint else {}),
            }
            for fault in faults
        ],
    )
