"""``penstock explain`` for a service: its state, its concurrency, its reactions to errors."""

from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_type_hints

from penstock.core.graph.actor import OWN_STATE, read_actor
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Actor, Service
from penstock.core.graph.policy import Reaction, Retry
from penstock.core.graph.questions import unanswered
from penstock.core.graph.signature import is_async
from penstock.core.graph.state import StateSpec
from penstock.core.units import duration_text

__all__ = ["service_facts", "service_lines"]

_KINDS = {"value": "State[{}]", "list": "ListState[{}]", "map": "MapState[{}, {}]"}
_BOUNDARIES = ("decode", "process", "produce")


def service_facts(graph: Graph, service: Service) -> dict[str, Any]:
    """Return what a service declares, for ``--json`` and for :func:`service_lines`."""
    overlaps = is_async(service.function)
    of_actor = {"actor": _actor(service)} if isinstance(service, Actor) else {}
    return of_actor | {
        "delivery": service.delivery,
        "concurrency": service.concurrency if overlaps else None,
        "timeout": duration_text(service.timeout) if overlaps else None,
        "states": [_state(spec) for spec in service.states if spec.name != OWN_STATE],
        "asks": [
            f"{each.name}, and waits for {duration_text(each.timeout)}" for each in service.asks
        ],
        "answers": [each.name for each in service.answers],
        "timers": service.timed,
        "changelog": graph.changelog(service).name if service.keeps_state else None,
        "errors": {
            boundary: _reaction(getattr(service.errors, boundary)) for boundary in _BOUNDARIES
        },
    }


def service_lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts for people, each with its label."""
    if actor := facts.get("actor"):
        yield from _several("receives", actor["receives"])
        yield from _several("fields", actor["fields"])
        yield "passivated", f"when idle for {actor['idle_after']}"
    if facts["concurrency"] is not None:
        text = f"up to {facts['concurrency']} calls at a time in each partition"
        yield "async", f"{text}, each for at most {facts['timeout']}"
    for number, state in enumerate(facts["states"]):
        lasts = f", forgotten {state['ttl']} after it was written" if state["ttl"] else ""
        yield "" if number else "state", f"{state['name']}: {state['type']}{lasts}"
    yield from _several("asks", facts["asks"])
    yield from _several("answers", facts["answers"])
    if facts["timers"]:
        yield "timers", "yes"
    if facts["changelog"]:
        yield "changelog", f"topic {facts['changelog']}"
    for number, (boundary, reaction) in enumerate(facts["errors"].items()):
        yield "" if number else "on errors", f"{boundary}: {_words(reaction)}"


def _several(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts):
        yield "" if number else label, text


def _actor(part: Actor) -> dict[str, Any]:
    """Return what an actor receives and holds."""
    found = read_actor(part.function)
    hints = get_type_hints(found.fields, include_extras=True)
    return {
        "idle_after": duration_text(part.idle_after),
        "receives": [
            f"{_type(kind)}: {each.name}"
            for each in found.receivers
            for kind in each.signature.takes
        ],
        "fields": [f"{name}: {_type(hints[name])}" for name in found.names],
    }


def _state(spec: StateSpec) -> dict[str, str | None]:
    types = [spec.key, spec.type] if spec.kind == "map" else [spec.type]
    return {
        "name": spec.name,
        "type": _KINDS[spec.kind].format(*(_type(each) for each in types)),
        "ttl": None if spec.ttl is None else duration_text(spec.ttl),
    }


def _type(kind: Any) -> str:
    if (asked := unanswered(kind)) not in (None, Any):
        return f"Unanswered[{_type(asked)}]"
    return str(kind) if get_args(kind) else getattr(kind, "__name__", str(kind))


def _reaction(given: Reaction | Retry) -> dict[str, Any]:
    if not isinstance(given, Retry):
        return {"then": given}
    return {
        "retries": given.times,
        "first": duration_text(given.first),
        "longest": duration_text(given.longest),
        "then": given.then,
    }


def _words(reaction: dict[str, Any]) -> str:
    then = {"dead_letter": "dead letter", "stop": "stop"}[reaction["then"]]
    if "retries" not in reaction:
        return then
    waits = f"after {reaction['first']}, then twice as long up to {reaction['longest']}"
    return f"retried up to {reaction['retries']} times, {waits}; then {then}"
