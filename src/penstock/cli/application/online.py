"""Try the connections of sources, sinks and look-ups of an application, all at the same time."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from penstock.connectors import Lookup
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Sink, Source
from penstock.core.printable import printable
from penstock.errors import PenstockError, Place, Problem

__all__ = ["try_connections"]

_AT_ONCE = 8
_NOT_TRIED = "it has no connection to try"


def try_connections(
    graph: Graph, lookups: Mapping[str, Lookup[Any]]
) -> tuple[dict[str, str], list[Problem]]:
    """Return what each connector found, by the names of parts and look-ups, and what is wrong."""
    parts = [part for part in graph.parts if isinstance(part, Source | Sink)]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="online") as pool:
        answers = list(pool.map(_tried, parts))
        asked = list(pool.map(_asked, lookups.items()))
    names = [part.name for part in parts] + list(lookups)
    both = list(zip(names, answers + asked, strict=True))
    found = {name: answer for name, answer in both if isinstance(answer, str)}
    return found, [answer for _, answer in both if isinstance(answer, Problem)]


def _tried(part: Source | Sink) -> str | Problem:
    attempt = getattr(part.connector, "attempt", None)
    if not callable(attempt):
        return _NOT_TRIED
    try:
        return printable(str(attempt(part)))
    except Exception as error:  # noqa: BLE001 - of a connector of others: told as its problem
        return _problem(f"{part.kind} {part.name!r}", error, part.place)


def _asked(named: tuple[str, Lookup[Any]]) -> str | Problem:
    name, lookup = named
    try:
        return printable(asyncio.run(lookup.attempt()))
    except Exception as error:  # noqa: BLE001 - of a store of others: told as its problem
        return _problem(f"look-up {name!r}", error, lookup.place)


def _problem(what: str, error: Exception, place: Place | None) -> Problem:
    if isinstance(error, PenstockError):
        detail = f"\n  {error.detail}" if error.detail else ""
        return Problem(error.code, f"{what}: {error.message}{detail}", error.hint, place)
    text = f"{what}: {type(error).__name__}: {error}"
    return Problem("connector.raised", printable(text), "", place)
