"""SQL over tables and running states: one answer, or the answer again whenever it has changed."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any, TypeVar

from penstock.cli.console.reach import Reach
from penstock.core.expression.fault import FaultError
from penstock.core.graph.graph import Graph
from penstock.core.sql.budget import QueryError
from penstock.core.sql.plan import Plan
from penstock.errors import TransientError
from penstock.serving.desk.offers import Asked, Event
from penstock.serving.http.problems import Problem, problem_of
from penstock.serving.relations.asking import opened_queries, plan_for, shown_by
from penstock.serving.relations.catalog import StateRelation
from penstock.serving.relations.running import Asked as Query
from penstock.serving.relations.running import Found, Queries
from penstock.serving.sql.answers import about, row_objects
from penstock.serving.sql.routes import faults_problem, query_problem

__all__ = ["ROWS", "Answers"]

T = TypeVar("T")

ROWS = 500
"""The most rows of an answer that a page shows."""
_MOST_TEXT = 20_000
_MOST_AT_ONCE = 4
"""So many queries are asked and watched at once; each may hold a table in memory."""
_MOMENT = timedelta(seconds=5)
_AGAIN_SECONDS = 1.0
_STOP_SECONDS = 0.2
_ANSWER_BYTES = 1 << 20


class Answers:
    """Answers queries as ``penstock query`` does, without Spark and without a gateway."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._room = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def relations(self, asked: Asked) -> list[dict[str, Any]]:
        """Return what queries may name, with its columns."""
        del asked
        return [
            {
                "name": name,
                "kind": "state" if isinstance(each, StateRelation) else "table",
                "key": list(each.schema.key),
                "columns": [
                    {"name": field.name, "type": str(field.type)} for field in each.schema.fields
                ],
            }
            for name, each in sorted(shown_by(self._reach.application).items())
        ]

    def document(self, asked: Asked) -> dict[str, Any]:
        """Return the answer of ``query``."""
        graph, plan = self._planned(asked)
        with self._place(), _refusals():
            return _told(asyncio.run(self._once(graph, plan)))

    def stream(self, asked: Asked) -> Iterator[Event]:
        """Yield the answer of ``query`` and again when it has changed; a mistake is the last event.

        What cannot be answered at the moment is told as ``waiting``, and asked again.
        """
        try:
            with self._place(), _refusals():
                graph, plan = self._planned(asked)
                yield from self._watched(graph, plan, asked.stop)
        except Problem as problem:
            yield Event("problem", problem.document())

    def _watched(self, graph: Graph, plan: Plan, stop: threading.Event) -> Iterator[Event]:
        last: dict[str, Any] = {}
        with asyncio.Runner() as runner:
            stack = AsyncExitStack()
            queries = runner.run(stack.enter_async_context(self._opened(graph, plan)))
            try:
                while not stop.is_set():
                    try:
                        told = _told(runner.run(queries.answer(_query(plan))))
                    except TransientError as error:
                        yield Event("waiting", problem_of(error).document())
                    else:
                        if told["rows"] != last.get("rows") or "rows" not in last:
                            last = told
                            yield Event("answer", told)
                    runner.run(_rest(stop))
            finally:
                runner.run(stack.aclose())

    async def _once(self, graph: Graph, plan: Plan) -> Found:
        async with self._opened(graph, plan) as queries:
            return await queries.answer(_query(plan))

    @asynccontextmanager
    async def _opened(self, graph: Graph, plan: Plan) -> AsyncIterator[Queries]:
        settings = replace(self._reach.serving, query_rows=ROWS, answer_bytes=_ANSWER_BYTES)
        connection = self._reach.log.connection.within(_MOMENT)
        async with opened_queries(
            graph, plan, connection, settings=settings, secret=self._reach.secret()
        ) as queries:
            yield queries

    def _planned(self, asked: Asked) -> tuple[Graph, Plan]:
        graph, text = self._reach.application, asked.query.get("query", "").strip().rstrip(";")
        if not text or len(text) > _MOST_TEXT:
            why = "it is missing" if not text else f"it has more than {_MOST_TEXT} characters"
            raise Problem(
                HTTPStatus.BAD_REQUEST, "query.value", f"query: {why}", allowed="one SELECT"
            )
        try:
            plan = plan_for(text, shown_by(graph))
        except FaultError as error:
            raise faults_problem((error.fault,), text) from error
        if not isinstance(plan, Plan):
            raise faults_problem(plan, text)
        return graph, plan

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._room.acquire(blocking=False):
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "query.busy",
                f"{_MOST_AT_ONCE} queries are asked or watched here already",
                retry_after=1,
            )
        try:
            yield
        finally:
            self._room.release()


def _told(found: Found) -> dict[str, Any]:
    return {"rows": row_objects(found), **about(found)}


def _query(plan: Plan) -> Query:
    return Query(plan=plan, at_least={}, wait_seconds=0.0, require=lambda _: None)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except QueryError as error:
        raise query_problem(error) from error


async def _rest(stop: threading.Event) -> None:
    """Let the connections to workers live for a while, until nobody watches any more."""
    left = _AGAIN_SECONDS
    while left > 0 and not stop.is_set():
        await asyncio.sleep(_STOP_SECONDS)
        left -= _STOP_SECONDS
