"""Look-ups: ``/v1/tables/{name}/rows`` and ``/v1/states/{service}/{state}/values``."""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.core.asking.questions import Get, Positions, Rows, Scan
from penstock.core.graph.data import Table
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.parts import Service
from penstock.core.records.codec import JsonCodec
from penstock.core.settings.settings import ServingSettings
from penstock.errors import DataError
from penstock.serving.http.asked import (
    Freshness,
    Range,
    lists,
    mark_of,
    read_freshness,
    read_query,
    read_range,
    text_of_key,
)
from penstock.serving.http.bodies import JSON
from penstock.serving.http.problems import Problem
from penstock.serving.http.rights import require_right, until_refused
from penstock.serving.lookups.push import ChangeStream, Subscribed
from penstock.serving.tables.changes import read_mark
from penstock.serving.tables.shown import Shown
from penstock.serving.tables.view import TableView

__all__ = ["LookupRoutes", "merged"]

_LOOK_SECONDS = 0.01
"""How often a wait for offsets of a table looks whether they have come."""


class LookupRoutes:
    """Answers for the tables and the states that a gateway shows."""

    def __init__(
        self,
        gateway: Gateway,
        settings: ServingSettings,
        *,
        shown: Shown,
        stop: asyncio.Event,
    ) -> None:
        self._gateway = gateway
        self._settings = settings
        self._owners = shown.owners
        self._views = shown.views
        self._stop = stop
        self._tables = {table.name: table for table in gateway.tables}
        self._codecs = {
            table.name: JsonCodec(table.record, max_bytes=table.topic.max_record_bytes)
            for table in gateway.tables
        }
        self._services = {service.name: service for service in gateway.services}

    async def get_row(self, request: Request) -> Response:
        """Answer with the row of a key."""
        table, view = self._table(request)
        fresh = read_freshness(request, self._settings)
        fresh.require_topics({table.topic.name})
        key = _key(request)
        await self._reach(table, view, fresh)
        about = self._about_view(table, view)  # before the row, which may be newer
        value = view.get(key)
        fresh.require(about["stale_seconds"])
        if value is None:
            raise _missing("row.missing", f"{table.name} has no row of this key", about)
        return _json({"key": text_of_key(key), "value": self._row(table, value), **about})

    async def scan_rows(self, request: Request) -> Response:
        """Answer with the rows of a range of keys."""
        table, view = self._table(request)
        fresh = read_freshness(request, self._settings)
        fresh.require_topics({table.topic.name})
        asked = read_range(request, self._settings)
        await self._reach(table, view, fresh)
        about = self._about_view(table, view)
        page = await asyncio.to_thread(
            view.page,
            prefix=asked.prefix,
            start=asked.start,
            end=asked.end,
            rows=asked.rows,
            size=self._settings.answer_bytes,
        )
        fresh.require(about["stale_seconds"])
        rows = [
            {"key": text_of_key(key), "value": self._row(table, value)} for key, value in page.rows
        ]
        last = mark_of(page.rows[-1][0]) if page.more and page.rows else None
        return _json({"rows": rows, "next": last, **about})

    async def push_rows(self, request: Request) -> Response:
        """Answer with the rows of a key or a prefix, and then with what changes in them."""
        table, view = self._table(request)
        query = read_query(request)
        subscribed = Subscribed(
            view,
            prefix=query.get("prefix", "").encode("utf-8", "surrogateescape"),
            key=query["key"].encode("utf-8", "surrogateescape") if "key" in query else None,
            positions=read_mark(request.headers.get("last-event-id", "")),
            rows=self._settings.rows,
            size=self._settings.answer_bytes,
        )
        decode = partial(self._row, table)
        refused = until_refused(request.scope, self._gateway, table.name)
        return ChangeStream(table, subscribed, decode=decode, stop=self._stop, refused=refused)

    async def get_value(self, request: Request) -> Response:
        """Answer with the value of a key."""
        service, state = self._state(request)
        fresh = read_freshness(request, self._settings)
        fresh.require_topics({data.topic.name for data in service.reads})
        key = _key(request)
        task = await self._owners.task_of(service, key)
        found = await self._owners.ask(
            service,
            Get(
                service=service.name,
                task=task,
                state=state,
                key=key,
                at_least=fresh.at_least,
                wait_seconds=fresh.wait_seconds,
                standby=True,
            ),
            max_stale=fresh.max_stale_seconds,
        )
        fresh.require(found.stale_seconds)
        about = _about(found.positions, found.stale_seconds, standby=found.standby)
        if not found.rows:
            raise _missing("value.missing", f"{state} has no value of this key", about)
        return _json({"key": text_of_key(key), "value": msgspec.Raw(found.rows[0][1]), **about})

    async def scan_values(self, request: Request) -> Response:
        """Answer with the values of a range of keys, of all tasks."""
        service, state = self._state(request)
        fresh = read_freshness(request, self._settings)
        fresh.require_topics({data.topic.name for data in service.reads})
        asked = read_range(request, self._settings)
        tasks = await self._owners.tasks(service)
        several = await asyncio.gather(
            *(self._scan(service, state, task, asked, fresh) for task in tasks)
        )
        rows, last = merged(several, rows=asked.rows, size=self._settings.answer_bytes)
        positions: Positions = {}
        for found in several:
            for topic, offsets in found.positions.items():
                positions.setdefault(topic, {}).update(offsets)
        ages = [found.stale_seconds for found in several]
        stale = None if None in ages else max((age for age in ages if age is not None), default=0.0)
        fresh.require(stale)
        listed = [{"key": text_of_key(key), "value": msgspec.Raw(value)} for key, value in rows]
        following = None if last is None else mark_of(last)
        about = _about(positions, stale, standby=any(found.standby for found in several))
        return _json({"rows": listed, "next": following, **about})

    def _scan(
        self, service: Service, state: str, task: int, asked: Range, fresh: Freshness
    ) -> Awaitable[Rows]:
        question = Scan(
            service=service.name,
            task=task,
            state=state,
            prefix=asked.prefix,
            start=asked.start,
            end=asked.end,
            rows=asked.rows,
            size=self._settings.answer_bytes,
            at_least=fresh.at_least,
            wait_seconds=fresh.wait_seconds,
            standby=True,
        )
        return self._owners.ask(service, question, max_stale=fresh.max_stale_seconds)

    def _table(self, request: Request) -> tuple[Table[Any], TableView]:
        name = request.path_params["name"]
        table = self._tables.get(name)
        if table is None:
            raise _unknown("table.unknown", f"this gateway shows no table {name!r}", self._tables)
        require_right(request.scope, self._gateway, name)
        view = self._views[name]
        if view.trouble:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE, "table.unready", view.trouble, retry_after=1
            )
        return table, view

    def _state(self, request: Request) -> tuple[Service, str]:
        name, state = request.path_params["service"], request.path_params["state"]
        service = self._services.get(name)
        if service is None:
            text = f"this gateway shows no state of {name!r}"
            raise _unknown("service.unknown", text, self._services)
        require_right(request.scope, self._gateway, name)
        states = [each.name for each in service.states]
        if state not in states:
            raise _unknown("state.unknown", f"{name} has no state {state!r}", states)
        return service, state

    async def _reach(self, table: Table[Any], view: TableView, fresh: Freshness) -> None:
        """Wait until a table has the offsets that are asked for."""
        wanted = fresh.at_least.get(table.topic.name, {})
        deadline = monotonic() + fresh.wait_seconds
        while any(view.positions.get(number, 0) <= offset for number, offset in wanted.items()):
            if monotonic() >= deadline:
                raise Problem(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "position.behind",
                    f"{table.name} is not there yet",
                    retry_after=1,
                    positions=lists({table.topic.name: view.positions}),
                )
            await asyncio.sleep(_LOOK_SECONDS)

    def _about_view(self, table: Table[Any], view: TableView) -> dict[str, Any]:
        positions = lists({table.topic.name: view.positions})
        return {"positions": positions, "stale_seconds": view.stale_seconds}

    def _row(self, table: Table[Any], value: bytes) -> Any:
        """Return a row as its type says; what cannot be read says so in its place."""
        try:
            return self._codecs[table.name].decode(value)
        except DataError as error:
            return {"unreadable": error.message}


def merged(
    several: Sequence[Rows], *, rows: int, size: int
) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
    """Return the first rows of several pages, and the last key where there are further ones."""
    # Behind the end of a page that has more, rows of the others are not known to be the next.
    ends = [page.rows[-1][0] for page in several if page.more and page.rows]
    end = min(ends, default=None)
    listed = sorted(row for page in several for row in page.rows)
    known = [row for row in listed if end is None or row[0] <= end]
    found: list[tuple[bytes, bytes]] = []
    held = 0
    for key, value in known:
        held += len(key) + len(value)
        if found and (len(found) == rows or held > size):
            return found, found[-1][0]
        found.append((key, value))
    return found, end


def _key(request: Request) -> bytes:
    key: str = request.path_params["key"]
    return key.encode("utf-8", "surrogateescape")


def _about(positions: Positions, stale: float | None, *, standby: bool) -> dict[str, Any]:
    """Return what an answer says of itself; ``stale``: a standby gave it."""
    found: dict[str, Any] = {"positions": lists(positions), "stale_seconds": stale}
    return {**found, "stale": True} if standby else found


def _missing(code: str, text: str, about: dict[str, Any]) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, code, text, **about)


def _unknown(code: str, text: str, known: Any) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, code, text, allowed=", ".join(known))


def _json(document: Any) -> Response:
    return Response(msgspec.json.encode(document), media_type=JSON)
