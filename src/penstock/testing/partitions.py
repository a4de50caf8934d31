"""An application as it is where every topic has the same number of partitions."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.core.graph.data import OnLog, Stream
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Part, Service
from penstock.core.topic import TopicSpec
from penstock.core.wiring.operators import is_repartitioned
from penstock.errors import DefinitionError

__all__ = ["cut_graph", "cut_topics"]


def cut_graph(graph: Graph, partitions: int) -> Graph:
    """Return an application whose operators know that every topic has so many partitions.

    One that repartitions tells each partition how far event time is, and one that reads such a
    stream waits for each partition that its records come from. Nothing else depends on the number.
    """
    return replace(graph, parts=tuple(_cut_part(part, partitions) for part in graph.parts))


def cut_topics(graph: Graph, partitions: int) -> Iterator[TopicSpec]:
    """Yield the topics of an application with so many partitions; dead letters stay as they are."""
    for spec in graph.topics():
        yield spec if spec == graph.dead_letters else replace(spec, partitions=partitions)


def _cut_part(part: Part, partitions: int) -> Part:
    if not isinstance(part, Service) or part.operator is None:
        return part
    if not any(is_repartitioned(data) for data in (*part.reads, *part.writes)):
        return part
    operator = part.operator.reading(
        [_with_sources(data, partitions) for data in part.operator.reads]
    )
    plan = operator.plan()
    if isinstance(plan, list):
        raise DefinitionError(tuple(plan))
    return replace(
        part,
        reads=tuple(_with_sources(data, partitions) for data in part.reads),
        writes=tuple(_with_partitions(data, partitions) for data in part.writes),
        operator=operator,
        plan=plan,
    )


def _with_sources(data: Any, partitions: int) -> Any:
    """Return a stream whose records come from so many partitions; others as they are."""
    if not isinstance(data, Stream) or not data.sources:
        return data
    return replace(data, sources=tuple(str(number) for number in range(partitions)))


def _with_partitions(data: OnLog, partitions: int) -> OnLog:
    return replace(data, topic=replace(data.topic, partitions=partitions))
