"""Which queries are answered from what runs: the rule, and the way there without a gateway."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from time import monotonic

from penstock.backbone.client.connection import Connection
from penstock.core.expression.fault import Fault, FaultError
from penstock.core.graph.data import Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.settings.settings import ServingSettings
from penstock.core.sql.plan import Plan
from penstock.core.sql.planner import plan_query, relations_of
from penstock.serving.relations.catalog import (
    Relation,
    StateRelation,
    TableRelation,
    relations_of_app,
    schemas,
)
from penstock.serving.relations.running import Queries
from penstock.serving.tables.owners import Owners
from penstock.serving.tables.view import READING, TableView

__all__ = ["opened_queries", "plan_for", "runs_without_spark", "shown_by"]

_LOOK_SECONDS = 0.02


def shown_by(graph: Graph) -> dict[str, Relation]:
    """Return all tables and states of an application."""
    tables = [data for data in graph.data if isinstance(data, Table)]
    services = [part for part in graph.parts if isinstance(part, Service) and part.states]
    return relations_of_app(graph, tables, services)


def runs_without_spark(text: str, relations: Mapping[str, Relation]) -> bool:
    """Return whether a query is one for what runs.

    That is: it names a state, which nothing else knows; or it names tables alone, and is in the
    language that needs no Spark.
    """
    try:
        named = relations_of(text)
    except FaultError:
        return False
    if any(isinstance(relations.get(name), StateRelation) for name in named):
        return True
    known = all(isinstance(relations.get(name), TableRelation) for name in named)
    return known and isinstance(plan_query(text, schemas(relations)), Plan)


def plan_for(text: str, relations: Mapping[str, Relation]) -> Plan | tuple[Fault, ...]:
    """Return the plan of a query over relations, or everything wrong with it."""
    return plan_query(text, schemas(relations))


@asynccontextmanager
async def opened_queries(
    graph: Graph,
    plan: Plan,
    connection: Connection,
    *,
    settings: ServingSettings,
    secret: bytes,
) -> AsyncGenerator[Queries, None]:
    """Give what answers a query while the block runs; its tables are read first, and followed."""
    relations = shown_by(graph)
    owners = Owners(graph.app, connection, secret)
    views = {
        reading.name: TableView(
            connection, relation.table.topic.name, most_bytes=settings.table_bytes
        )
        for reading in plan.readings
        if isinstance(relation := relations[reading.name], TableRelation)
    }
    queries = Queries(relations, settings, owners=owners, views=views)
    for view in views.values():
        view.start()
    try:
        await _read(views.values(), settings.query_time.total_seconds())
        yield queries
    finally:
        queries.close()
        await owners.aclose()
        for view in views.values():
            view.close()


async def _read(views: Iterable[TableView], seconds: float) -> None:
    """Wait until tables are read; one that cannot be says so when it is asked."""
    deadline = monotonic() + seconds
    for view in views:
        while True:
            if view.trouble != READING or monotonic() >= deadline:
                break
            await asyncio.sleep(_LOOK_SECONDS)
