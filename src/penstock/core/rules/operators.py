"""What `penstock check` says of operators: joins, patterns, selections and the like."""

from collections.abc import Iterator

from penstock.core.graph.data import Lake, Stream
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, Service
from penstock.errors import Problem

__all__ = ["operator_problems"]


def operator_problems(graph: Graph) -> Iterator[Problem]:
    """Yield what is wrong with the inputs and outputs of operators."""
    for part in graph.parts:
        if isinstance(part, Pipeline | Service) and part.operator is not None and part.plan:
            yield from _inputs(part)
            if isinstance(part, Service) and part.plan.stateful:
                yield from _together(part)


def _inputs(part: Pipeline | Service) -> Iterator[Problem]:
    if isinstance(part, Pipeline):
        yield from _on_the_log(part)
    for data in part.inputs:
        if isinstance(data, Lake) and isinstance(part, Service):
            text = f"{part.name}: services do not read the lake, and {data.name!r} is there"
            yield Problem("operator.lake", text, 'on="spark"', part.place)


def _on_the_log(part: Pipeline) -> Iterator[Problem]:
    """Yield a problem where an operator on Spark would have to read the lake."""
    kind = part.operator.kind if part.operator is not None else "operator"
    for data in part.reads:
        if isinstance(data, Lake):
            text = (
                f"{part.name}: a {kind} reads streams and tables, and {data.name!r} is in the lake"
            )
            hint = "write it as a function: @app.pipeline(reads=...)"
            yield Problem("operator.lake", text, hint, part.place)
        elif data.archive is not None:
            text = f"{part.name}: a {kind} on Spark does not read the history of {data.name!r}"
            yield Problem("operator.history", text, 'on="services"', part.place)


def _together(part: Service) -> Iterator[Problem]:
    """Yield a problem where records of one key may be in several tasks of a service."""
    kind = part.operator.kind if part.operator is not None else "operator"
    reads = part.reads
    for data in reads:
        if data.record.schema.key and data.topic.partitioning == "key":
            continue
        if data.topic.partitions == 1 and len(reads) == 1:
            continue
        text = f"{part.name}: a {kind} is per key, but {data.kind} {data.name!r} has no key"
        hint = f'@record(key="...") above class {data.record.name}, or key it through a topic: '
        hint += f'app.stream(..., {data.name}.repartition(by="..."), on="services")'
        if not isinstance(data, Stream):
            hint = f'@record(key="...") above class {data.record.name}'
        yield Problem("operator.no-key", text, hint, part.place)
    numbers = {data.name: data.topic.partitions for data in reads}
    if len(set(numbers.values())) > 1:
        shown = ", ".join(f"{name!r} has {number}" for name, number in numbers.items())
        text = f"{part.name}: a {kind} needs equal keys in one task, and of its partitions {shown}"
        most = max(numbers.values())
        fewest = min(numbers, key=lambda name: numbers[name])
        hint = f"give each partitions={most}; {fewest!r} can be repartitioned through a topic: "
        hint += f"app.stream(..., {fewest}.repartition(by=...), partitions={most})"
        yield Problem("operator.partitions", text, hint, part.place)
