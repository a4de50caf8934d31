"""Verify an application before anything runs: every problem, each with its place and a way out."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from penstock.core.graph.data import Data, Lake, Stream, Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Part, Pipeline, RealTime, Service, Sink, Source
from penstock.core.hints import declare_first, did_you_mean, label
from penstock.core.options import UnreadableSpan
from penstock.core.records.record import record_type
from penstock.core.rules.archive import archive_problems
from penstock.core.rules.connectors import (
    describes_itself,
    sink_connector_problems,
    source_connector_problems,
)
from penstock.core.rules.cycles import undeclared_cycles
from penstock.core.rules.gateways import gateway_problems
from penstock.core.rules.jobs import job_problems
from penstock.core.rules.lake import lake_problems
from penstock.core.rules.operators import operator_problems
from penstock.core.rules.patterns import pattern_problems
from penstock.core.rules.services import service_problems
from penstock.core.rules.windows import aggregation_problems
from penstock.core.topic import topic_name_problem
from penstock.errors import DefinitionError, Problem

__all__ = ["check", "verified"]

_RESERVED = ("_penstock", "__", "penstock.")


def verified(graph: Graph) -> Graph:
    """Return the graph itself, or raise a DefinitionError with every problem found."""
    if problems := check(graph):
        raise DefinitionError(tuple(problems))
    return graph


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
            wrong = f"names that begin with {node.name[:2]!r} are reserved for Penstock or Kafka"
        if wrong:
            yield Problem("name.invalid", f"the name {node.name!r}: {wrong}", "", node.place)
        if counted[node.name] > 1:
            others = [str(o.place) for o in nodes if o.name == node.name and o is not node]
            text = f"{node.kind} {node.name!r} has the same name as the one at {', '.join(others)}"
            yield Problem(
                "name.twice", text, "choose another name: names identify data and parts", node.place
            )
    yield from _own_topics(graph)


def _own_topics(graph: Graph) -> Iterator[Problem]:
    """Find names of streams and tables that topics of the application's own have."""
    own = {topic.name: what for what, topic in graph.own_topics().items()}
    for data in graph.on_log:
        if used := own.get(data.topic.name):
            text = f"{data.kind} {data.name!r} has the same name as the topic of {used}"
            yield Problem(
                "name.twice", text, "choose another name: names identify data and parts", data.place
            )


def _data(graph: Graph) -> Iterator[Problem]:
    for data in graph.data:
        schema = data.record.schema
        if isinstance(data, Lake):
            continue
        if data.topic.partitions < 1:
            text = f"{data.kind} {data.name!r} has {data.topic.partitions} partitions"
            yield Problem("data.option", text, "give it 1 or more", data.place)
        if data.topic.replication is not None and data.topic.replication < 1:
            text = f"{data.kind} {data.name!r} has {data.topic.replication} replicas"
            yield Problem("data.option", text, "give it 1 or more", data.place)
        if isinstance(data, Table) and not schema.key and schema.fields:
            text = f"table {data.name!r} holds {schema.name}, which has no key"
            hint = f'declare one: @record(key="...") above class {schema.name}'
            hint = _own_key(graph, data) or hint
            yield Problem("table.no-key", text, hint, data.place)
        if isinstance(data, Stream):
            yield from _stream(graph, data)
        elif data.history is not None:
            yield from _history(data)


def _own_key(graph: Graph, data: Data) -> str | None:
    """Return how computed records get a key; None: nobody selected their fields."""
    for part in graph.parts:
        if not isinstance(part, Pipeline | Service) or data not in part.outputs:
            continue
        if part.aggregation is not None:
            return "give .window(..., by=...) a field"
        if part.operator is not None:
            names = next((each.record.schema.key for each in part.inputs), ())
            fields = ", ".join(f'{name}="{name}"' for name in names) or 'device="device"'
            return f"select the fields of the key as they are: .select({fields}, ...)"
    return None


def _history(table: Table[Any]) -> Iterator[Problem]:
    if table.history is not None and table.history <= timedelta():
        text = f"table {table.name!r}: history: in no time no version is kept"
        yield Problem("table.history", text, 'history="1d", for example', table.place)
    if table.record.schema.time is None and table.record.schema.fields:
        name = table.record.name
        text = f"table {table.name!r} keeps versions, but {name} does not say from when on it holds"
        hint = f'give it an event time: @record(key=..., time="...") above class {name}'
        yield Problem("table.history", text, hint, table.place)


def _stream(graph: Graph, stream: Stream[Any]) -> Iterator[Problem]:
    schema = stream.record.schema
    if stream.topic.partitioning == "key" and not schema.key and schema.fields:
        text = f"stream {stream.name!r} is partitioned by key, but {schema.name} has no key"
        hint = f'declare one: @record(key="...") above class {schema.name}, or use "round_robin"'
        hint = _own_key(graph, stream) or hint
        yield Problem("stream.no-key", text, hint, stream.place)
    if stream.event_time.disorder is not None and schema.time is None:
        text = f"stream {stream.name!r} allows disorder, but {schema.name} has no event time"
        hint = f'declare one: @record(time="...") above class {schema.name}'
        yield Problem("stream.no-time", text, hint, stream.place)


def _sources(graph: Graph) -> Iterator[Problem]:
    for part in graph.parts:
        if not isinstance(part, Source):
            continue
        yield from source_connector_problems(part)
        if (
            getattr(part.connector, "gives_changes", False)
            and part.parse is None
            and not isinstance(part.into, Table)
        ):
            text = f"source {part.name!r} gives changes, and a stream cannot tell of deletions"
            hint = "let it feed a table, or give it a parse that makes a record of each change"
            yield Problem("source.no-parse", text, hint, part.place)
        made, held = part.parse, part.into.record
        if isinstance(made, type) and record_type(made) and not issubclass(made, held.cls):
            text = f"source {part.name!r}: parse makes {made.__name__}, but its {part.into.kind} "
            hint = f"give it another stream, or a function that returns {held.name}"
            text += f"{part.into.name!r} holds {held.name}"
            yield Problem("source.parse", text, hint, part.place)


def _sinks(graph: Graph) -> Iterator[Problem]:
    for part in graph.parts:
        if not isinstance(part, Sink) or not describes_itself(part.connector):
            continue
        if lacking := list(sink_connector_problems(part)):
            yield from lacking
        elif isinstance(part.reads, Table) and not getattr(
            part.connector, "takes_deletions", False
        ):
            text = (
                f"sink {part.name!r} reads a table, and {part.connector.describe()} cannot delete"
            )
            hint = "give it a stream, or a connector that takes deletions, as postgres_table does"
            yield Problem("sink.no-deletions", text, hint, part.place)


def _pipelines(graph: Graph) -> Iterator[Problem]:
    for part in graph.parts:
        if not isinstance(part, Pipeline) or part.declared:
            continue
        expected = part.function.__code__.co_argcount if hasattr(part.function, "__code__") else -1
        if expected not in {-1, len(part.reads)}:
            text = (
                f"pipeline {part.name!r} takes {expected} DataFrames, but reads {len(part.reads)}"
            )
            hint = "give it one parameter per input, in the same order"
            yield Problem("pipeline.parameters", text, hint, part.place)
        yield from _trigger(part)


def _trigger(part: Pipeline) -> Iterator[Problem]:
    trigger = part.trigger
    span = trigger.checkpoint_every if isinstance(trigger, RealTime) else trigger.every
    if isinstance(span, UnreadableSpan):
        text = f"pipeline {part.name!r}: trigger: {span.problem}"
        yield Problem("data.option", text, 'micro_batch(every="10s"), for example', part.place)
    elif span < timedelta():
        text = f"pipeline {part.name!r}: trigger: {span} is negative"
        yield Problem("data.option", text, 'micro_batch(every="10s"), for example', part.place)
    if not isinstance(trigger, RealTime):
        return
    if isinstance(part.writes, Lake):
        text = f"pipeline {part.name!r} is real-time, but writes the lake"
        hint = "real-time mode writes streams and tables; use micro_batch()"
        yield Problem("pipeline.real-time", text, hint, part.place)
    if part.output == "complete":
        text = f"pipeline {part.name!r} is real-time with output 'complete'"
        yield Problem("pipeline.real-time", text, "use 'append' or 'update'", part.place)


def _declared(graph: Graph, part: Part, used: list[object]) -> Iterator[Problem]:
    known = [declared.name for declared in graph.data]
    for data in _apart(used):
        if not isinstance(data, Stream | Table | Lake):
            text = (
                f"{part.kind} {part.name!r} names {label(data)}, which is not a stream or a table"
            )
            hint = declare_first(data) or did_you_mean(str(data), known)
            yield Problem("part.not-data", text, hint, part.place)
        elif data not in graph.data:  # by name alone: one that is declared twice is told as such
            text = f"{part.kind} {part.name!r} uses {data.name!r}, which is not in {graph.app!r}"
            yield Problem("part.undeclared", text, did_you_mean(data.name, known), part.place)


def _apart(used: list[object]) -> Iterator[object]:
    """Yield a stream and its history as what they were declared as."""
    for data in used:
        if isinstance(data, Stream) and data.archive is not None:
            yield data.live
            yield data.archive
        else:
            yield data


def _used(part: Part) -> list[object]:
    return [*part.inputs, *part.outputs]


def _uses(graph: Graph) -> Iterator[Problem]:
    said = {problem.place for problem in graph.problems if problem.code == "part.not-data"}
    for part in graph.parts:
        yield from _declared(graph, part, _used(part))
        if not part.from_outside and not part.inputs and part.place not in said:
            text = f"{part.kind} {part.name!r} reads nothing"
            yield Problem("part.reads-nothing", text, "name what it reads: reads=...", part.place)


def _cycles(graph: Graph) -> Iterator[Problem]:
    whole = tuple(part for part in graph.parts if not any(_declared(graph, part, _used(part))))
    for path in undeclared_cycles(replace(graph, parts=whole)):
        closing = graph.part(path[-1])
        text = f"records would go round for ever: {' → '.join((*path, path[0]))}"
        hint = f"if you intend this: writes=feedback(...) at {path[-1]}"
        yield Problem("graph.cycle", text, hint, closing.place if closing else None)


_RULES: tuple[Callable[[Graph], Iterator[Problem]], ...] = (
    _names,
    _data,
    _uses,
    _sources,
    _sinks,
    _pipelines,
    service_problems,
    aggregation_problems,
    operator_problems,
    gateway_problems,
    job_problems,
    lake_problems,
    archive_problems,
    pattern_problems,
    _cycles,
)
