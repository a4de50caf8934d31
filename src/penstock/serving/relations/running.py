"""Runs queries over relations: within limits, in threads of their own, as each relation stands."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import monotonic
from typing import Any

import msgspec

from penstock.core.asking.questions import Positions
from penstock.core.settings.settings import ServingSettings
from penstock.core.sql.access import Access, access_of
from penstock.core.sql.budget import Budget, QueryError
from penstock.core.sql.execute import Executor
from penstock.core.sql.plan import Column, Plan
from penstock.errors import TransientError
from penstock.serving.relations.catalog import Relation, StateRelation, TableRelation
from penstock.serving.relations.reading import (
    Opened,
    Wanted,
    open_state,
    open_table,
    positions_of,
)
from penstock.serving.tables.owners import Owners
from penstock.serving.tables.view import TableView

__all__ = ["About", "Asked", "Found", "Queries"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query, and how fresh its answer has to be; ``require`` raises where it is too old.

    ``standby``: standbys may answer for tasks whose owner is away.
    """

    plan: Plan
    at_least: Positions
    wait_seconds: float
    require: Callable[[float | None], None]
    max_stale_seconds: float | None = None
    standby: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """How far a relation was when it was read; ``left_out``: rows that could not be read."""

    positions: Positions
    stale_seconds: float | None
    left_out: int
    standby: bool = False
    """Whether a standby answered for some of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The rows of an answer, as many as fit; ``more``: there are further ones."""

    columns: tuple[Column, ...] = ()
    """None where it is no query."""
    rows: list[tuple[Any, ...]]
    more: bool
    relations: Mapping[str, About]

    @property
    def stale_seconds(self) -> float | None:
        """Return how old the oldest of the relations may be; None: not known."""
        ages = [each.stale_seconds for each in self.relations.values()]
        known = [age for age in ages if age is not None]
        return None if len(known) < len(ages) else max(known, default=0.0)


class Queries:
    """Answers queries, so many at once; for one event loop."""

    def __init__(
        self,
        relations: Mapping[str, Relation],
        settings: ServingSettings,
        *,
        owners: Owners,
        views: Mapping[str, TableView],
    ) -> None:
        self.relations = relations
        self._settings = settings
        self._owners = owners
        self._views = views
        self._room = asyncio.Semaphore(settings.queries)
        self._threads = ThreadPoolExecutor(settings.queries, thread_name_prefix="query")
        self._ending = threading.Event()

    async def answer(self, asked: Asked) -> Found:
        """Return the answer of a query.

        QueryError ``query.time`` or ``query.memory``: it takes too much. TransientError: too many
        are under way, or a relation is not there now.
        """
        deadline = monotonic() + self._settings.query_time.total_seconds()
        try:
            async with asyncio.timeout(deadline - monotonic()):
                await self._room.acquire()
        except TimeoutError:
            text = f"{self._settings.queries} queries are under way"
            raise TransientError(text, code="query.busy", hint="ask again") from None
        try:
            return await self._run(asked, deadline)
        finally:
            self._room.release()

    async def values(self, relation: StateRelation, access: Access) -> Found:
        """Return the keys of a state with their values as JSON, of some keys or of a range."""
        deadline = monotonic() + self._settings.query_time.total_seconds()
        opened = await open_state(relation, self._owners, Wanted(access=access), raw=True)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(opened.close)
            budget = self._budget(deadline, self._ending)
            rows, more = await asyncio.get_running_loop().run_in_executor(
                self._threads, self._taken, budget.timed(opened.rows)
            )
        return Found(rows=rows, more=more, relations={relation.name: _about(opened)})

    async def positions(self, relation: StateRelation) -> Positions:
        """Return how far a state is, without reading it."""
        return await positions_of(relation, self._owners)

    async def probe(self, plan: Plan) -> Any:
        """Return how far the relations of a plan are; None: that is not cheaper than to ask."""
        found = {}
        for reading in plan.readings:
            relation = self.relations[reading.name]
            if isinstance(relation, TableRelation):
                found[reading.name] = {"": self._views[reading.name].positions}
            elif access_of(relation.keyed, reading.keep).keys is not None:
                return None
            elif isinstance(relation, StateRelation):
                found[reading.name] = await positions_of(relation, self._owners)
        return found

    def close(self) -> None:
        """End; what is under way ends soon."""
        self._ending.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, asked: Asked, deadline: float) -> Found:
        plan, gone = asked.plan, threading.Event()
        loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            several: list[Opened] = []
            for reading in plan.readings:
                opened = await self._open(reading.name, reading.keep, asked)
                stack.push_async_callback(opened.close)
                several.append(opened)
                asked.require(opened.stale_seconds)
            stack.callback(gone.set)
            rows, more = await loop.run_in_executor(
                self._threads, self._execute, plan, several, self._budget(deadline, gone)
            )
        about = {
            reading.name: _about(opened)
            for reading, opened in zip(plan.readings, several, strict=True)
        }
        return Found(columns=plan.columns, rows=rows, more=more, relations=about)

    async def _open(self, name: str, keep: Any, asked: Asked) -> Opened:
        relation = self.relations[name]
        at_least = {
            topic: offsets for topic, offsets in asked.at_least.items() if topic in relation.topics
        }
        wanted = Wanted(
            access=access_of(relation.keyed, keep),
            at_least=at_least,
            wait_seconds=asked.wait_seconds,
            max_stale_seconds=asked.max_stale_seconds,
            standby=asked.standby,
        )
        match relation:
            case TableRelation():
                return await open_table(relation, self._views[name], wanted)
            case StateRelation():
                return await open_state(relation, self._owners, wanted)
        raise TypeError(name)

    def _budget(self, deadline: float, gone: threading.Event) -> Budget:
        seconds = self._settings.query_time.total_seconds()

        def look() -> None:
            if gone.is_set() or self._ending.is_set():
                raise TransientError("nobody waits for the answer", code="query.left")
            if monotonic() >= deadline:
                raise QueryError(
                    f"the query takes longer than {seconds:g}s",
                    code="query.time",
                    hint="ask for a key or a range, or raise serving.query_time",
                )

        return Budget(self._settings.query_bytes, name="serving.query_bytes", look=look)

    def _execute(
        self, plan: Plan, several: list[Opened], budget: Budget
    ) -> tuple[list[tuple[Any, ...]], bool]:
        """Run a plan, in a thread that may be held up; stop at the rows that an answer has."""
        return self._taken(Executor(plan).run([each.rows for each in several], budget))

    def _taken(self, rows: Iterable[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], bool]:
        """Return as many rows as an answer has, and whether there are more."""
        found: list[tuple[Any, ...]] = []
        size = 0
        for row in rows:
            size += _size(row)
            if len(found) == self._settings.query_rows or (
                found and size > self._settings.answer_bytes
            ):
                return found, True
            found.append(row)
        return found, False


def _about(opened: Opened) -> About:
    return About(
        positions=opened.positions,
        stale_seconds=opened.stale_seconds,
        left_out=opened.left_out,
        standby=opened.standby,
    )


def _size(row: tuple[Any, ...]) -> int:
    """Return about how many bytes a row of the answer has."""
    return len(msgspec.json.encode(row, enc_hook=str))
