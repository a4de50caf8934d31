"""Reads what a query needs of a relation, as it stands at one moment: of a state, of each task.

Only the keys, or the range of keys, that the query leaves are asked for. Rows come as they are
taken; what a worker holds for us is let go in the end.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import msgspec

from penstock.core.asking.questions import More, Pick, Positions, Rows, Scan
from penstock.core.sql.access import EVERYTHING, Access
from penstock.errors import DataError, PenstockError, TransientError
from penstock.serving.relations.catalog import StateRelation, TableRelation
from penstock.serving.tables.owners import Owners
from penstock.serving.tables.view import TableView

__all__ = ["Opened", "Wanted", "open_state", "open_table", "positions_of"]

_PAGE_ROWS = 5000
_FIRST_BYTES = 8 << 20
"""The most bytes of the first pages of all tasks together."""
_LEAST_BYTES, _MOST_BYTES = 64 << 10, 2 << 20
_PAGE_SECONDS = 30.0
_LOOK_SECONDS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of a relation is wanted, and what must be in it: ``at_least`` is waited for."""

    access: Access
    at_least: Positions = field(default_factory=dict)
    wait_seconds: float = 0.0
    max_stale_seconds: float | None = None
    standby: bool = False
    """Whether a standby may answer for a task whose owner is away."""


@dataclass(slots=True, eq=False)
class Opened:
    """A relation that is being read: where it stands, and its rows, once, from any thread."""

    positions: Positions
    stale_seconds: float | None
    rows: Iterator[Any]
    standby: bool = False
    """Whether a standby answered for any task."""
    left_out: int = 0
    """How many rows were left out so far: they cannot be read."""
    ends: list[Callable[[], Any]] = field(default_factory=list)

    async def close(self) -> None:
        """Let go of what is held for it."""
        for end in self.ends:
            with suppress(PenstockError):
                await end()


async def open_table(relation: TableRelation, view: TableView, wanted: Wanted) -> Opened:
    """Read a table; TransientError where it is not ready, or not there yet."""
    topic = relation.table.topic.name
    offsets = wanted.at_least.get(topic, {})
    deadline = monotonic() + wanted.wait_seconds
    while True:
        if view.trouble:
            raise TransientError(f"{relation.name}: {view.trouble}", code="table.unready")
        at = view.positions
        if all(at.get(number, 0) > offset for number, offset in offsets.items()):
            break
        if monotonic() >= deadline:
            raise TransientError(f"{relation.name} is not there yet", code="position.behind")
        await asyncio.sleep(_LOOK_SECONDS)
    access, stale = wanted.access, view.stale_seconds
    positions, values = await asyncio.to_thread(
        view.cut, keys=access.keys, start=access.start, end=access.end
    )
    opened = Opened({topic: positions}, stale, iter(()))
    opened.rows = _read(
        opened, ((value,) for value in values), lambda value: (relation.read(value),)
    )
    return opened


async def open_state(
    relation: StateRelation, owners: Owners, wanted: Wanted, *, raw: bool = False
) -> Opened:
    """Read a state, of all tasks that have what is wanted; TransientError where one is moving.

    ``raw``: its rows are keys with their values as JSON.
    """
    reading = _StateReading(relation, owners, wanted)
    pages = await reading.begin()
    positions: Positions = {}
    for _, page in pages:
        for topic, offsets in page.positions.items():
            positions.setdefault(topic, {}).update(offsets)
    ages = [page.stale_seconds for _, page in pages]
    known = [age for age in ages if age is not None]
    stale = None if len(known) < len(ages) else max(known, default=0.0)
    standby = any(page.standby for _, page in pages)
    opened = Opened(positions, stale, iter(()), standby=standby, ends=[reading.end])
    read = _as_is if raw else relation.shape.rows
    opened.rows = _read(opened, reading.rows(), read)
    return opened


async def positions_of(relation: StateRelation, owners: Owners) -> Positions:
    """Return how far all tasks of a state are, without reading it."""
    reading = _StateReading(relation, owners, Wanted(access=EVERYTHING))
    return await reading.positions()


def _as_is(key: bytes, value: bytes) -> Iterable[Any]:
    return ((key.decode("utf-8", "replace"), msgspec.Raw(value)),)


class _StateReading:
    """The pages of a state's tasks: the first of each at once, the others as rows are taken."""

    def __init__(self, relation: StateRelation, owners: Owners, wanted: Wanted) -> None:
        self._relation = relation
        self._owners = owners
        self._wanted = wanted
        self._loop = asyncio.get_running_loop()
        self._pages: list[tuple[str, Rows]] = []
        self._tasks: list[int] = []

    async def begin(self) -> list[tuple[str, Rows]]:
        """Ask every task for its first page."""
        service, keys = self._relation.service, self._wanted.access.keys
        questions: list[Pick | Scan] = []
        if keys is None:
            self._tasks = list(await self._owners.tasks(service))
            size = _FIRST_BYTES // max(1, len(self._tasks))
            questions += [self._scan(task, max(_LEAST_BYTES, size)) for task in self._tasks]
        else:
            by_task: dict[int, list[bytes]] = {}
            for key in keys:
                for task in await self._tasks_of(key):
                    by_task.setdefault(task, []).append(self._relation.shape.place(key))
            self._tasks = list(by_task)
            questions += [self._pick(task, some) for task, some in by_task.items()]
        found = await asyncio.gather(
            *(
                self._owners.ask_where(service, each, max_stale=self._wanted.max_stale_seconds)
                for each in questions
            ),
            return_exceptions=True,
        )
        self._pages = [each if isinstance(each, tuple) else ("", _NOTHING) for each in found]
        for each in found:
            if isinstance(each, BaseException):
                await self.end()
                raise each
        return list(self._pages)

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys with their values; another thread than the loop's asks for further pages."""
        for at, task in enumerate(self._tasks):
            while True:
                address, page = self._pages[at]
                yield from page.rows
                if not page.scan:
                    break
                asked = asyncio.run_coroutine_threadsafe(
                    self._more(address, task, page), self._loop
                )
                self._pages[at] = address, asked.result(_PAGE_SECONDS)

    async def _tasks_of(self, key: bytes) -> Iterable[int]:
        service = self._relation.service
        if self._relation.shape.routed:
            return (await self._owners.task_of(service, key),)
        return await self._owners.tasks(service)

    async def positions(self) -> Positions:
        """Return how far every task is."""
        service = self._relation.service
        tasks = await self._owners.tasks(service)
        pages = await asyncio.gather(
            *(self._owners.ask(service, self._pick(task, [])) for task in tasks)
        )
        found: Positions = {}
        for page in pages:
            for topic, offsets in page.positions.items():
                found.setdefault(topic, {}).update(offsets)
        return found

    async def end(self) -> None:
        """Let go of the scans that are held."""
        for task, (address, page) in zip(self._tasks, self._pages, strict=True):
            if page.scan:
                with suppress(PenstockError):
                    await self._owners.ask_at(address, self._next(task, page, rows=0))

    async def _more(self, address: str, task: int, page: Rows) -> Rows:
        return await self._owners.ask_at(address, self._next(task, page, rows=_PAGE_ROWS))

    def _next(self, task: int, page: Rows, *, rows: int) -> More:
        service, state = self._relation.service.name, self._relation.state
        return More(
            service=service,
            task=task,
            state=state,
            scan=page.scan,
            rows=rows,
            size=_MOST_BYTES,
            standby=page.standby,
        )

    def _scan(self, task: int, size: int) -> Scan:
        access = self._wanted.access if self._relation.shape.ranged else EVERYTHING
        return Scan(
            **self._of(task),
            start=access.start,
            end=access.end,
            rows=_PAGE_ROWS,
            size=min(size, _MOST_BYTES),
            hold=True,
        )

    def _pick(self, task: int, keys: list[bytes]) -> Pick:
        return Pick(**self._of(task), keys=keys)

    def _of(self, task: int) -> dict[str, Any]:
        return {
            "service": self._relation.service.name,
            "task": task,
            "state": self._relation.state,
            "at_least": self._wanted.at_least,
            "wait_seconds": self._wanted.wait_seconds,
            "standby": self._wanted.standby,
        }


_NOTHING = Rows(rows=[], positions={}, stale_seconds=0.0)


def _read(
    opened: Opened, rows: Iterable[tuple[Any, ...]], read: Callable[..., Iterable[Any]]
) -> Iterator[Any]:
    """Yield rows as their types say; those that cannot be read are counted."""
    for row in rows:
        try:
            found = read(*row)
        except DataError:
            opened.left_out += 1
            continue
        yield from found
