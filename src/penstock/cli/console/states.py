"""The state of running services: which there is, who has it, and the values of keys."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from penstock.cli.console.log import LogWatcher
from penstock.cli.records import text_of
from penstock.core.asking.questions import Rows, Scan
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.errors import ConfigurationError
from penstock.serving.desk.offers import Asked
from penstock.serving.http.problems import Problem
from penstock.serving.tables.owners import Owners

__all__ = ["States"]

T = TypeVar("T")

_MOMENT = timedelta(seconds=5)
"""How long the workers may take."""
_ROWS = 100
"""So many keys are told at once."""
_PAGE_BYTES = 1 << 20
_MOST_TEXT = 4096


class States:
    """Asks the workers that own the state, as ``penstock state`` does."""

    def __init__(
        self,
        watcher: LogWatcher,
        graph: Callable[[], Graph | None],
        secret: Callable[[], bytes],
    ) -> None:
        self._watcher = watcher
        self._graph = graph
        self._secret = secret

    def listing(self, asked: Asked) -> list[dict[str, Any]]:
        """Return the states of the application, and who has them."""
        del asked
        graph = self._known()
        services = [part for part in graph.parts if isinstance(part, Service) and part.states]

        async def look(owners: Owners) -> list[dict[str, Any]]:
            found = []
            for service in services:
                routes = await owners.routes(service)
                found += [
                    {
                        "state": f"{service.name}.{state.name}",
                        "service": service.name,
                        "kind": state.kind,
                        "tasks": routes.count,
                        "running": len(routes.addresses),
                        "workers": sorted(set(routes.addresses.values())),
                    }
                    for state in service.states
                ]
            return found

        return self._ask(graph, look)

    def values(self, asked: Asked) -> dict[str, Any]:
        """Return values in the order of their keys; ``prefix`` and ``after`` choose keys."""
        graph = self._known()
        service, state = _named(graph, asked.path["name"])
        after = asked.query.get("after", "")

        async def look(owners: Owners) -> list[Rows]:
            ask = partial(
                Scan,
                service=service.name,
                state=state,
                prefix=asked.query.get("prefix", "").encode("utf-8", "surrogateescape"),
                start=after.encode("utf-8", "surrogateescape") + b"\x00" if after else b"",
                rows=_ROWS + 1,
                size=_PAGE_BYTES,
            )
            tasks = await owners.tasks(service)
            return await asyncio.gather(*(owners.ask(service, ask(task=task)) for task in tasks))

        several = self._ask(graph, look)
        rows = sorted(row for found in several for row in found.rows)
        ages = [found.stale_seconds for found in several]
        return {
            "state": asked.path["name"],
            "rows": [{"key": text_of(key), "value": _value(value)} for key, value in rows[:_ROWS]],
            "more": len(rows) > _ROWS,
            "stale_seconds": None if None in ages else max((age or 0.0 for age in ages), default=0),
        }

    def _known(self) -> Graph:
        if (graph := self._graph()) is None:
            raise ConfigurationError("no application is known here", code="console.no-app")
        return graph

    def _ask(self, graph: Graph, look: Callable[[Owners], Awaitable[T]]) -> T:
        connection = self._watcher.connection.within(_MOMENT)

        async def asked() -> T:
            async with aclosing(Owners(graph.app, connection, self._secret())) as owners:
                return await look(owners)

        return asyncio.run(asked())


def _named(graph: Graph, text: str) -> tuple[Service, str]:
    name, _, state = text.rpartition(".")
    part = graph.part(name)
    if not isinstance(part, Service) or state not in {each.name for each in part.states}:
        raise Problem(HTTPStatus.NOT_FOUND, "state.unknown", f"there is no state {text!r}")
    return part, state


def _value(value: bytes) -> Any:
    """Return a value as it is, or as text that is cut."""
    return (
        msgspec.json.decode(value)
        if len(value) <= _MOST_TEXT
        else f"{text_of(value)[:_MOST_TEXT]}…"
    )
