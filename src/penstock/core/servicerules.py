"""What must hold for a service before it runs: its parameters, what it gives, its keys."""

import inspect
from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations
from typing import Any, get_args

import msgspec

from penstock.core.graph import Delivery, Graph, Service
from penstock.core.signature import Definition, Signature, method, read_definition
from penstock.core.timer import Timer
from penstock.errors import Problem

__all__ = ["service_problems"]


def service_problems(graph: Graph) -> Iterator[Problem]:
    """Yield every problem of every service."""
    for part in graph.parts:
        if not isinstance(part, Service) or part.aggregation:
            continue
        if method(part.function) is None:
            text = f"service {part.name!r} has no method process"
            hint = "write def process(self, record: ..., ...) -> ..."
            yield Problem("service.process", text, hint, part.place)
            continue
        definition = read_definition(part.function)
        if unreadable := _unreadable(definition):
            text = f"service {part.name!r}: its annotations cannot be read: {unreadable}"
            yield Problem("service.annotation", text, "import the names they use", part.place)
            continue
        yield from _made(part)
        yield from _promises(part)
        yield from _takes(part, definition.process)
        yield from _timers(part, definition)
        yield from _gives(part, definition)
        yield from _states(part)


def _unreadable(definition: Definition) -> str:
    on_timer = definition.on_timer.unreadable if definition.on_timer else ""
    return definition.process.unreadable or on_timer


def _made(service: Service) -> Iterator[Problem]:
    """A class must be makeable without arguments: every partition has an object of its own."""
    if not inspect.isclass(service.function):
        return
    try:
        inspect.signature(service.function).bind()
    except (TypeError, ValueError) as error:
        text = f"service {service.name!r} cannot be made without arguments: {error}"
        name = service.function.__name__
        hint = f"declare an object instead of the class: app.service(...)({name}(...))"
        yield Problem("service.arguments", text, hint, service.place)


def _promises(service: Service) -> Iterator[Problem]:
    if service.delivery not in get_args(Delivery):
        text = f"service {service.name!r}: there is no delivery {service.delivery!r}"
        hint = f"choose one of {', '.join(get_args(Delivery))}"
        yield Problem("service.delivery", text, hint, service.place)
    if service.concurrency < 1 or service.timeout <= timedelta():
        text = f"service {service.name!r} allows no call: {service.concurrency} at a time, "
        hint = "give it a concurrency of 1 or more and some timeout"
        yield Problem("service.concurrency", f"{text}{service.timeout} each", hint, service.place)
    for wrong in service.errors.problems():
        text = f"service {service.name!r}: errors: {wrong}"
        yield Problem("service.errors", text, "see on_error(...)", service.place)


def _takes(service: Service, signature: Signature) -> Iterator[Problem]:
    if not signature.takes:
        text = f"service {service.name!r} does not say which record it takes"
        wanted = " | ".join(data.record.name for data in service.reads) or "its record type"
        hint = f"annotate its first parameter with {wanted}"
        yield Problem("service.takes", text, hint, service.place)
        return
    for data in service.reads:
        if data.record.cls not in signature.takes and Any not in signature.takes:
            text = (
                f"service {service.name!r} takes {_types(signature.takes)}, "
                f"{data.kind} {data.name!r} holds {data.record.name}"
            )
            hint = f"annotate the parameter with {data.record.name}, or read another stream"
            yield Problem("service.takes", text, hint, service.place)
    yield from _unknown(service, signature, kinds="State nor Context")


def _unknown(service: Service, signature: Signature, *, kinds: str) -> Iterator[Problem]:
    for name in signature.unknown:
        text = f"service {service.name!r}: the parameter {name!r} is neither {kinds}"
        hint = f"annotate it: {name}: State[...] or {name}: Context"
        yield Problem("service.parameter", text, hint, service.place)


def _timers(service: Service, definition: Definition) -> Iterator[Problem]:
    on_timer = definition.on_timer
    if on_timer is None:
        if definition.process.timers:
            text = f"service {service.name!r} sets timers and has no method on_timer"
            hint = "make it a class with process and on_timer"
            yield Problem("service.timers", text, hint, service.place)
        return
    if on_timer.takes != (Timer,):
        text = f"service {service.name!r}: on_timer does not take a Timer first"
        hint = "write it as def on_timer(self, timer: Timer, ...)"
        yield Problem("service.timers", text, hint, service.place)
    if on_timer.context:
        text = f"service {service.name!r}: on_timer asks for a Context: a timer is no record"
        yield Problem("service.timers", text, "the Timer itself tells the times", service.place)
    yield from _unknown(service, on_timer, kinds="State nor Timers")


def _gives(service: Service, definition: Definition) -> Iterator[Problem]:
    found = [definition.process, *([definition.on_timer] if definition.on_timer else [])]
    if any(signature.gives is None for signature in found):
        text = f"service {service.name!r} does not say what it gives"
        hint = "annotate it: -> None, -> Record or -> Iterable[Record]"
        yield Problem("service.gives", text, hint, service.place)
        return
    gives = dict.fromkeys(given for signature in found for given in signature.gives or ())
    written = [data.record.cls for data in service.writes]
    for given in gives:
        if given is Any or given in written:
            continue
        text = f"service {service.name!r} gives {_types((given,))}, and writes " + (
            ", ".join(f"{data.name} ({data.record.name})" for data in service.writes) or "nothing"
        )
        hint = "name the stream it is for in writes=..."
        yield Problem("service.gives", text, hint, service.place)
    for data in service.writes:
        name = data.record.name
        if data.record.cls not in gives and Any not in gives:
            text = f"service {service.name!r} writes {data.name!r} and never gives {name}"
            hint = f"add {name} to what it returns, or take it out of writes"
            yield Problem("service.never-gives", text, hint, service.place)


def _states(service: Service) -> Iterator[Problem]:
    for one, other in combinations(service.states, 2):
        if one.name == other.name:
            text = f"service {service.name!r} declares the state {one.name!r} in two ways"
            hint = "a state has one type: write the same annotation in process and on_timer"
            yield Problem("service.state", text, hint, service.place)
    for spec in service.states:
        for kind in (spec.type, *([spec.key] if spec.kind == "map" else [])):
            if why := _unkeepable(kind):
                text = f"service {service.name!r}: the state {spec.name!r} cannot be kept: {why}"
                hint = "JSON holds numbers, texts, instants, record types, lists, maps, X | None"
                yield Problem("service.state", text, hint, service.place)
    if service.keeps_state:
        yield from _keys(service)


def _unkeepable(kind: Any) -> str:
    """Say why values of a type cannot be written as JSON and read again; empty: they can."""
    try:
        msgspec.json.schema(kind)
    except (TypeError, RuntimeError) as error:
        if "custom types" in str(error):
            name = str(kind) if get_args(kind) else _types((kind,))
            return f"{name} is nothing that JSON has"
        return str(error).partition("\n")[0]
    return ""


def _keys(service: Service) -> Iterator[Problem]:
    for data in service.reads:
        if not data.record.schema.key or data.topic.partitioning != "key":
            text = f"service {service.name!r} keeps state, {data.kind} {data.name!r} has no key"
            hint = f'state is per key: @record(key="...") above class {data.record.name}'
            yield Problem("service.no-key", text, hint, service.place)
    for one, other in combinations(service.reads, 2):
        if one.topic.partitions != other.topic.partitions:
            text = (
                f"service {service.name!r} keeps state over {one.name!r} and {other.name!r}, "
                f"which have {one.topic.partitions} and {other.topic.partitions} partitions"
            )
            hint = "a key must have one home: give both the same number"
            yield Problem("service.partitions", text, hint, service.place)


def _types(types: tuple[Any, ...]) -> str:
    return " | ".join(getattr(found, "__name__", str(found)) for found in types)
