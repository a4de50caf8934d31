"""The state of running services: which there is, who has it, and the values of keys."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from penstock.cli.console.reach import Reach
from penstock.cli.records import text_of
from penstock.core.asking.questions import Get, Rows, Scan
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.errors import TransientError
from penstock.serving.desk.offers import Asked
from penstock.serving.http.problems import Problem
from penstock.serving.tables.owners import Owners

__all__ = ["States"]

T = TypeVar("T")

_MOMENT = timedelta(seconds=5)
"""How long the workers may take."""
_AGE_SECONDS = 1.0
_ROWS = 100
"""So many keys are told at once."""
_PAGE_BYTES = 1 << 20
_MOST_TEXT = 4096


class States:
    """Asks the workers that own the state, as ``penstock state`` does.

    ``total`` gives a metric of a part over all processes; None: none has told it.
    """

    def __init__(self, reach: Reach, total: Callable[[str, str], float | None]) -> None:
        self._reach = reach
        self._total = total

    def listing(self, asked: Asked) -> list[dict[str, Any]]:
        """Return the states of the application, and who has them."""
        del asked
        graph = self._reach.application
        services = [part for part in graph.parts if isinstance(part, Service) and part.states]

        async def look(owners: Owners) -> list[dict[str, Any]]:
            found = []
            for service in services:
                routes = await owners.routes(service)
                keys = self._total(service.name, "state_keys")
                found += [
                    {
                        "state": f"{service.name}.{state.name}",
                        "service": service.name,
                        "kind": state.kind,
                        "tasks": routes.count,
                        "running": len(routes.addresses),
                        "workers": sorted(set(routes.addresses.values())),
                        "changelog": service.changelog(graph.app).name,
                        "keys_of_service": keys,
                        "stale_seconds": await _age(owners, service, state.name),
                    }
                    for state in service.states
                ]
            return found

        return self._ask(graph, look)

    def values(self, asked: Asked) -> dict[str, Any]:
        """Return values in the order of their keys; ``prefix`` and ``after`` choose keys.

        With ``key`` the value of that key, and who owns it.
        """
        graph = self._reach.application
        service, state = _named(graph, asked.path["name"])
        if "key" in asked.query:
            return self._value_of(graph, service, state, asked.query["key"])
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

    def _value_of(self, graph: Graph, service: Service, state: str, text: str) -> dict[str, Any]:
        """Return the value of one key, and which worker owns it."""
        key = text.encode("utf-8", "surrogateescape")

        async def look(owners: Owners) -> tuple[int, str, Rows]:
            task = await owners.task_of(service, key)
            question = Get(service=service.name, task=task, state=state, key=key)
            return task, *await owners.ask_where(service, question)

        task, worker, found = self._ask(graph, look)
        return {
            "state": f"{service.name}.{state}",
            "rows": [{"key": text_of(key), "value": _value(value)} for key, value in found.rows],
            "more": False,
            "stale_seconds": found.stale_seconds,
            "task": task,
            "worker": worker,
        }

    def _ask(self, graph: Graph, look: Callable[[Owners], Awaitable[T]]) -> T:
        connection = self._reach.log.connection.within(_MOMENT)

        async def asked() -> T:
            async with aclosing(Owners(graph.app, connection, self._reach.secret())) as owners:
                return await look(owners)

        return asyncio.run(asked())


async def _age(owners: Owners, service: Service, state: str) -> float | None:
    """Return how old the state of the task that is furthest behind may be; None: nobody knows."""
    ask = partial(Scan, service=service.name, state=state, rows=1)
    try:
        async with asyncio.timeout(_AGE_SECONDS):
            several = await asyncio.gather(
                *(owners.ask(service, ask(task=task)) for task in await owners.tasks(service))
            )
    except (TransientError, TimeoutError):
        return None  # a task of it is moving, or nobody runs it
    ages = [found.stale_seconds for found in several]
    return None if None in ages else max((age or 0.0 for age in ages), default=None)


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
