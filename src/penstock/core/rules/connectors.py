"""What a connector of one's own lacks, said before anything starts."""

from collections.abc import Iterator
from typing import Any, get_args

from penstock.core.graph.parts import Delivery, Sink, Source
from penstock.errors import Problem

__all__ = ["describes_itself", "sink_connector_problems", "source_connector_problems"]

_NEEDED = {
    "interactive": "interactive = False: it needs nobody at a terminal",
    "grows": "grows = False: no splits are added while it runs",
    "splits": "def splits(self): the names of its splits",
    "open": "def open(self, split, position): one pass over a split",
    "delivery": 'delivery = "at_least_once", or what else it promises',
    "limits": "limits = BatchLimits(): how large a batch is at most",
}
_CALLED = ("splits", "open", "attach", "run")
_LIMITS = ("rows", "size", "span")


def describes_itself(given: Any) -> bool:
    """Return whether this may be a connector; of what cannot, the declaration says so."""
    return not isinstance(given, type) and callable(getattr(given, "describe", None))


def source_connector_problems(source: Source) -> Iterator[Problem]:
    """Yield what the connector of a source lacks of what runs it."""
    given: Any = source.connector
    if not describes_itself(given):
        return
    kind = type(given).__name__
    if _has(given, "attach") or _has(given, "run"):
        needed: tuple[str, ...] = ("interactive",)
    elif _has(given, "open") or _has(given, "splits"):
        needed = ("interactive", "grows", "splits", "open")
    else:
        text = f"source {source.name!r}: {kind} has neither run nor open"
        hint = "give it run(feed), or splits() and open(split, position)"
        yield Problem("source.no-connector", text, hint, source.place)
        return
    yield from _lacking(f"source {source.name!r}", given, needed, "source.no-connector", source)


def sink_connector_problems(sink: Sink) -> Iterator[Problem]:
    """Yield what the connector of a sink lacks of what runs it."""
    given: Any = sink.connector
    name, code = f"sink {sink.name!r}", "sink.no-connector"
    if not _has(given, "open"):
        text = f"{name}: {type(given).__name__} cannot be opened"
        yield Problem(code, text, "give it open(sink)", sink.place)
        return
    yield from _lacking(name, given, ("delivery", "limits"), code, sink)
    promise, words = getattr(given, "delivery", None), get_args(Delivery)
    if promise is not None and promise not in words:
        text = f"{name}: delivery of {type(given).__name__} is {promise!r}, which is no promise"
        yield Problem(code, text, f"one of {', '.join(words)}", sink.place)
    limits = getattr(given, "limits", None)
    if limits is not None and not all(hasattr(limits, each) for each in _LIMITS):
        text = f"{name}: limits of {type(given).__name__} are {limits!r}, which has no bounds"
        yield Problem(code, text, "limits = BatchLimits(rows=1_000)", sink.place)


def _lacking(
    name: str, given: Any, needed: tuple[str, ...], code: str, part: Source | Sink
) -> Iterator[Problem]:
    missing = [each for each in needed if not _has(given, each)]
    if missing:
        text = f"{name}: {type(given).__name__} has no {', '.join(missing)}"
        yield Problem(code, text, "; ".join(_NEEDED[each] for each in missing), part.place)


def _has(given: Any, name: str) -> bool:
    found = getattr(given, name, None)
    return callable(found) if name in _CALLED else found is not None
