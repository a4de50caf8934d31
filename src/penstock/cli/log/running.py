"""Queries that are answered from running services and from tables, without Spark."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.backbone.topics.range import EARLIEST, LATEST
from penstock.cli.screen.partlines import count_text
from penstock.cli.session import Session
from penstock.core.expression.fault import definition_error
from penstock.core.sql.differences import Changed, Differences
from penstock.core.sql.plan import Plan
from penstock.errors import ConfigurationError, TransientError
from penstock.machine.peers.secret import shared_secret
from penstock.serving.relations.asking import (
    opened_queries,
    plan_for,
    runs_without_spark,
    shown_by,
)
from penstock.serving.relations.running import Asked, Found, Queries

__all__ = ["RunningAnswer", "answer_from_running", "wants_running"]

_MOMENT = timedelta(seconds=5)
_WAIT_SECONDS = 10.0
_AGAIN_SECONDS = 1.0
_MOST_FAILURES = 30
"""So often in a row a watched query may fail."""


class RunningAnswer:
    """An answer, as it is written."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self.columns = [column.name for column in found.columns]
        self.truncated = found.more

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows."""
        return iter(self._found.rows)

    def refused(self) -> dict[str, int]:
        """Return how many rows of each relation cannot be read."""
        several = self._found.relations.items()
        return {name: about.left_out for name, about in several if about.left_out}


def wants_running(session: Session) -> bool:
    """Return whether a query is answered from what runs: as asked, or as it can be.

    A range of time is one of streams, which Spark reads.
    """
    arguments = session.arguments
    if arguments.engine != "auto":
        return bool(arguments.engine == "running")
    if arguments.watch:
        return True
    if (arguments.start, arguments.end) != (EARLIEST, LATEST):
        return False
    return runs_without_spark(arguments.sql, shown_by(session.application.graph))


def answer_from_running(
    session: Session,
    *,
    write: Callable[[Session, Any], None],
    tell: Callable[[Session, Any], None],
    value: Callable[[Any], Any],
) -> None:
    """Answer a query, or watch it until interrupted; ``write`` and ``tell`` put it out."""
    arguments, graph = session.arguments, session.application.graph
    plan = plan_for(arguments.sql, shown_by(graph))
    if not isinstance(plan, Plan):
        error = definition_error(plan, arguments.sql)
        raise ConfigurationError(
            plan[0].message,
            code=plan[0].code,
            detail=error.detail,
            hint="docs/queries.md has the language; streams and the lake need --engine spark",
        )
    settings = replace(
        session.loaded.settings.serving,
        query_rows=arguments.limit,
        query_time=arguments.time_limit,
        answer_bytes=sys.maxsize,
    )
    secret = shared_secret(settings, session.places.home)

    async def run(queries: Queries) -> None:
        if arguments.watch:
            await _watch(session, queries, plan, value)
            return
        answer = RunningAnswer(await queries.answer(_asked(plan)))
        write(session, answer)
        tell(session, answer)

    with session.connected() as connection:

        async def asked() -> None:
            async with opened_queries(
                graph, plan, connection.within(_MOMENT), settings=settings, secret=secret
            ) as queries:
                await run(queries)

        asyncio.run(asked())


async def _watch(
    session: Session, queries: Queries, plan: Plan, value: Callable[[Any], Any]
) -> None:
    """Ask again and again; write the rows, and then what changes in them."""
    differences, failures = Differences(plan.identity), 0
    names = [column.name for column in plan.columns]
    terminal = session.terminal
    if not session.arguments.json:
        terminal.row(("", *names))
    while True:
        try:
            found = await queries.answer(_asked(plan))
            failures = 0
        except TransientError as error:
            failures += 1
            if failures > _MOST_FAILURES:
                raise
            terminal.note(f"{error.message}; asking again")
            await asyncio.sleep(_AGAIN_SECONDS)
            continue
        if found.more:
            limit = count_text(session.arguments.limit)
            raise ConfigurationError(
                f"the answer has more than {limit} rows, which cannot be watched",
                code="query.too-many",
                hint="select fewer, or raise --limit",
            )
        for change in differences.next(found.rows):
            _write_change(session, names, change, value)
        await asyncio.sleep(_AGAIN_SECONDS)


def _write_change(
    session: Session, names: list[str], change: Changed, value: Callable[[Any], Any]
) -> None:
    def shown(row: tuple[Any, ...] | None) -> Any:
        return None if row is None else dict(zip(names, map(value, row), strict=True))

    if session.arguments.json:
        told = {"before": shown(change.before), "value": shown(change.after)}
        session.terminal.json_line(told)
        return
    row = change.after if change.after is not None else change.before
    sign = "+" if change.before is None else "-" if change.after is None else "~"
    session.terminal.row((sign, *(value(each) for each in row or ())))


def _asked(plan: Plan) -> Asked:
    return Asked(plan=plan, at_least={}, wait_seconds=_WAIT_SECONDS, require=lambda _: None)
