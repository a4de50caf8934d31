"""Try the connection of each source and sink of an application, all at the same time."""

from concurrent.futures import ThreadPoolExecutor

from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Sink, Source
from penstock.core.printable import printable
from penstock.errors import PenstockError, Problem

__all__ = ["try_connections"]

_AT_ONCE = 8
_NOT_TRIED = "it has no connection to try"


def try_connections(graph: Graph) -> tuple[dict[str, str], list[Problem]]:
    """Return what each connector found, by the names of the parts, and what is wrong."""
    parts = [part for part in graph.parts if isinstance(part, Source | Sink)]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="online") as pool:
        answers = list(pool.map(_tried, parts))
    found = {
        part.name: answer
        for part, answer in zip(parts, answers, strict=True)
        if isinstance(answer, str)
    }
    return found, [answer for answer in answers if isinstance(answer, Problem)]


def _tried(part: Source | Sink) -> str | Problem:
    attempt = getattr(part.connector, "attempt", None)
    if not callable(attempt):
        return _NOT_TRIED
    try:
        return printable(str(attempt(part)))
    except PenstockError as error:
        detail = f"\n  {error.detail}" if error.detail else ""
        text = f"{part.kind} {part.name!r}: {error.message}{detail}"
        return Problem(error.code, text, error.hint, part.place)
    except Exception as error:  # noqa: BLE001 - of a connector of others: told as its problem
        text = f"{part.kind} {part.name!r}: {type(error).__name__}: {error}"
        return Problem("connector.raised", printable(text), "", part.place)
