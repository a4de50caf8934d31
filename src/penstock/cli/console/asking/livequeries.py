"""The live queries of an application, with the numbers of their services; and one of them tried."""

import asyncio
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import msgspec

from penstock.cli.console.reach import Reach
from penstock.core.feeds.shared import SharedQuery, shared_query
from penstock.core.graph.gateway import Gateway
from penstock.core.grid.livequeries import LiveQueries
from penstock.core.units import duration_text
from penstock.errors import DataError
from penstock.serving.desk.offers import Asked, Event
from penstock.serving.http.problems import Problem
from penstock.serving.live.alone import followed

__all__ = ["Tries"]

_MOST_TEXT = 20_000
_MOST_DOCUMENTS = 200
"""So many documents of a result are sent to a page."""
_LOOK_SECONDS = 0.5
_END: Any = object()


class Tries:
    """Tells of live queries, and follows one as a client of a gateway would.

    ``total`` gives a metric of a part over all processes; None: none has told it.
    """

    def __init__(self, reach: Reach, total: Callable[[str, str], float | None]) -> None:
        self._reach = reach
        self._total = total

    def listing(self, asked: Asked) -> list[dict[str, Any]]:
        """Return what clients may follow, and which services do the work."""
        del asked
        return [
            {
                "live": live.name,
                "gateways": gateways,
                "table": live.table.name,
                "columns": live.columns,
                "rows": live.rows,
                "cells": live.rows * live.columns,
                "rule": live.rule,
                "lease": duration_text(live.lease),
                "leases": f"{live.name}.leases",
                "registered": self._total(f"{live.name}.leases", "state_keys"),
                "matching": [
                    part.name
                    for part in self._reach.application.parts
                    if any(each.name.startswith(f"{live.name}.row") for each in part.outputs)
                    and part.name != f"{live.name}.leases"
                ],
                "telling": [
                    part.name
                    for part in self._reach.application.parts
                    if live.news.name in {each.name for each in part.outputs}
                ],
            }
            for live, gateways in self._known()
        ]

    def stream(self, asked: Asked) -> Iterator[Event]:
        """Yield the result of ``query``, a filter or JSON, and then each change of it."""
        try:
            live, query = self._asked(asked)
        except Problem as problem:
            yield Event("problem", problem.document())
            return
        connection, most = self._reach.log.connection, self._reach.serving.live_bytes
        yield Event("began", {"query": query.text})
        with asyncio.Runner() as runner:
            messages = followed(
                live, connection, query, most_bytes=most, look_seconds=_LOOK_SECONDS
            )
            try:
                while not asked.stop.is_set():
                    message = runner.run(_next(messages))
                    if message is _END:
                        return
                    if message is not None:
                        yield Event("message", _cut(message))
            finally:
                runner.run(messages.aclose())

    def _known(self) -> list[tuple[LiveQueries, list[str]]]:
        found: dict[str, tuple[LiveQueries, list[str]]] = {}
        for part in self._reach.application.parts:
            for live in part.live if isinstance(part, Gateway) else ():
                found.setdefault(live.name, (live, []))[1].append(part.name)
        return list(found.values())

    def _asked(self, asked: Asked) -> tuple[LiveQueries, SharedQuery]:
        name, text = asked.path["name"], asked.query.get("query", "").strip()
        live = next((live for live, _ in self._known() if live.name == name), None)
        if live is None:
            raise Problem(
                HTTPStatus.NOT_FOUND, "live.unknown", f"there are no live queries {name!r}"
            )
        if len(text) > _MOST_TEXT:
            why = f"query: it has more than {_MOST_TEXT} characters"
            raise Problem(HTTPStatus.BAD_REQUEST, "query.value", why)
        given = text if text.startswith("{") else ""
        if not given:
            given = msgspec.json.encode({"filter": text} if text else {}).decode()
        try:
            return live, shared_query(given)
        except DataError as error:
            raise Problem(
                HTTPStatus.BAD_REQUEST, error.code, error.message, allowed=error.hint
            ) from error


async def _next(messages: Any) -> Any:
    return await anext(messages, _END)


def _cut(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with as many documents as a page shows."""
    for name in ("documents", "events"):
        several = message.get(name)
        if isinstance(several, list) and len(several) > _MOST_DOCUMENTS:
            return message | {
                name: several[:_MOST_DOCUMENTS],
                "left_out": len(several) - _MOST_DOCUMENTS,
            }
    return message
