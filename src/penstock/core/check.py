"""Verify an application before anything runs: every problem, each with its place and a way out."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from penstock.core.cycles import undeclared_cycles
from penstock.core.graph import (
    Data,
    Graph,
    Lake,
    Part,
    Pipeline,
    RealTime,
    Service,
    Source,
    Stream,
    Table,
)
from penstock.core.place import did_you_mean
from penstock.core.signature import Signature, read_signature
from penstock.core.topic import topic_name_problem
from penstock.errors import Problem

__all__ = ["check"]

_RESERVED = ("_penstock", "__", "penstock.")


def check(graph: Graph) -> list[Problem]:
    """Return all problems of the application, in order of place in its source."""
    found = list(graph.problems)
    for rule in _RULES:
        found += rule(graph)
    unique = list(dict.fromkeys((problem, problem.place) for problem in found))
    return sorted((problem for problem, _ in unique), key=_order)


def _order(problem: Problem) -> tuple[str, int]:
    return (problem.place.file, problem.place.line) if problem.place else ("", 0)


def _names(graph: Graph) -> Iterator[Problem]:
    if wrong := topic_name_problem(graph.app):
        yield Problem("app.name", f"the application's name {graph.app!r}: {wrong}")
    nodes: list[Data | Part] = [*graph.data, *graph.parts]
    counted = Counter(node.name for node in nodes)
    for node in nodes:
        wrong = topic_name_problem(node.name)
        if wrong is None and node.name.startswith(_RESERVED):
            wrong = f"names that begin with {node.name[:2]!r} are Penstock's or Kafka's own"
        if wrong:
            yield Problem("name.invalid", f"the name {node.name!r}: {wrong}", "", node.place)
        if counted[node.name] > 1:
            others = [str(o.place) for o in nodes if o.name == node.name and o is not node]
            text = f"{node.kind} {node.name!r} has the name of what stands at {', '.join(others)}"
            yield Problem("name.twice", text, "names are identity: give it another", node.place)


def _data(graph: Graph) -> Iterator[Problem]:
    for data in graph.data:
        schema = data.record.schema
        if isinstance(data, Lake):
            names = [field.name for field in schema.fields]
            for name in data.partition_by:
                if name not in names:
                    text = f"lake table {data.name!r} is partitioned by {name!r}, not a field"
                    yield Problem("lake.partition", text, did_you_mean(name, names), data.place)
            continue
        if data.topic.partitions < 1:
            text = f"{data.kind} {data.name!r} has {data.topic.partitions} partitions"
            yield Problem("data.option", text, "give it 1 or more", data.place)
        if data.topic.replication is not None and data.topic.replication < 1:
            text = f"{data.kind} {data.name!r} has {data.topic.replication} replicas"
            yield Problem("data.option", text, "give it 1 or more", data.place)
        if isinstance(data, Table) and not schema.key and schema.fields:
            text = f"table {data.name!r} holds {schema.name}, which has no key"
            hint = f'name it: @record(key="...") above class {schema.name}'
            yield Problem("table.no-key", text, hint, data.place)
        if isinstance(data, Stream):
            yield from _stream(data)


def _stream(stream: Stream[Any]) -> Iterator[Problem]:
    schema = stream.record.schema
    if stream.topic.partitioning == "key" and not schema.key and schema.fields:
        text = f"stream {stream.name!r} is partitioned by key, {schema.name} has no key"
        hint = f'name it: @record(key="...") above class {schema.name}, or use "round_robin"'
        yield Problem("stream.no-key", text, hint, stream.place)
    if stream.disorder is not None and schema.time is None:
        text = f"stream {stream.name!r} allows disorder, {schema.name} has no event time"
        hint = f'name it: @record(time="...") above class {schema.name}'
        yield Problem("stream.no-time", text, hint, stream.place)


def _pipelines(graph: Graph) -> Iterator[Problem]:
    for part in graph.parts:
        if not isinstance(part, Pipeline):
            continue
        expected = part.function.__code__.co_argcount if hasattr(part.function, "__code__") else -1
        if expected not in {-1, len(part.reads)}:
            text = f"pipeline {part.name!r} takes {expected} DataFrames and reads {len(part.reads)}"
            hint = "one parameter for each stream it reads, in the same order"
            yield Problem("pipeline.parameters", text, hint, part.place)
        if isinstance(part.trigger, RealTime):
            if isinstance(part.writes, Lake):
                text = f"pipeline {part.name!r} is real-time and writes the lake"
                hint = "real-time mode writes streams and tables; use micro_batch()"
                yield Problem("pipeline.real-time", text, hint, part.place)
            if part.output == "complete":
                text = f"pipeline {part.name!r} is real-time with output 'complete'"
                yield Problem("pipeline.real-time", text, "use 'append' or 'update'", part.place)


def _services(graph: Graph) -> Iterator[Problem]:
    for part in graph.parts:
        if not isinstance(part, Service):
            continue
        signature = read_signature(part.function)
        if signature.unreadable:
            text = f"service {part.name!r}: its annotations cannot be read: {signature.unreadable}"
            yield Problem("service.annotation", text, "import the names they use", part.place)
            continue
        yield from _takes(part, signature)
        yield from _gives(part, signature)
        yield from _keyed_state(part)


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
    for name in signature.unknown:
        text = f"service {service.name!r}: the parameter {name!r} is neither State nor Context"
        hint = f"annotate it: {name}: State[...] or {name}: Context"
        yield Problem("service.parameter", text, hint, service.place)


def _gives(service: Service, signature: Signature) -> Iterator[Problem]:
    if signature.gives is None:
        text = f"service {service.name!r} does not say what it gives"
        hint = "annotate it: -> None, -> Record or -> Iterable[Record]"
        yield Problem("service.gives", text, hint, service.place)
        return
    written = [data.record.cls for data in service.writes]
    for given in signature.gives:
        if given is Any or given in written:
            continue
        text = f"service {service.name!r} gives {_types((given,))}, and writes " + (
            ", ".join(f"{data.name} ({data.record.name})" for data in service.writes) or "nothing"
        )
        hint = "name the stream it is for in writes=..."
        yield Problem("service.gives", text, hint, service.place)
    for data in service.writes:
        name = data.record.name
        if data.record.cls not in signature.gives and Any not in signature.gives:
            text = f"service {service.name!r} writes {data.name!r} and never gives {name}"
            hint = f"add {name} to what it returns, or take it out of writes"
            yield Problem("service.never-gives", text, hint, service.place)


def _keyed_state(service: Service) -> Iterator[Problem]:
    if not service.keeps_state:
        return
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


def _declared(graph: Graph, part: Part, used: list[object]) -> Iterator[Problem]:
    known = [declared.name for declared in graph.data]
    for data in used:
        if not isinstance(data, Stream | Table | Lake):
            text = f"{part.kind} {part.name!r} names {data!r}, which is no stream or table"
            yield Problem("part.not-data", text, did_you_mean(str(data), known), part.place)
        elif graph.find(data.name) != data:
            text = f"{part.kind} {part.name!r} uses {data.name!r}, which is not in {graph.app!r}"
            yield Problem("part.undeclared", text, did_you_mean(data.name, known), part.place)


def _used(part: Part) -> list[object]:
    match part:
        case Source():
            return [part.into]
        case Pipeline():
            return [*part.reads, part.writes]
        case Service():
            return [*part.reads, *part.writes]


def _uses(graph: Graph) -> Iterator[Problem]:
    for part in graph.parts:
        yield from _declared(graph, part, _used(part))


def _cycles(graph: Graph) -> Iterator[Problem]:
    whole = tuple(part for part in graph.parts if not any(_declared(graph, part, _used(part))))
    for path in undeclared_cycles(replace(graph, parts=whole)):
        closing = graph.part(path[-1])
        text = f"records go round for ever: {' → '.join((*path, path[0]))}"
        hint = f"if that is meant: writes=feedback(...) at {path[-1]}"
        yield Problem("graph.cycle", text, hint, closing.place if closing else None)


def _types(types: tuple[Any, ...]) -> str:
    return " | ".join(getattr(found, "__name__", str(found)) for found in types)


_RULES: tuple[Callable[[Graph], Iterator[Problem]], ...] = (
    _names,
    _data,
    _uses,
    _pipelines,
    _services,
    _cycles,
)
