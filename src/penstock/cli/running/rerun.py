"""A service run again over a finished range of the past, into topics of its own.

State starts empty, so the results are those of the range alone. The records of several inputs are
handled in the order of their timestamps, partition by partition; results are written at least
once, to topics that nobody else writes. What handles them is the task that a worker runs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import sleep

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import Partition, RawRecord
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import EARLIEST, LATEST, End, Instant, Latest, Start
from penstock.backbone.topics.span import settled_range
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import OnLog
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.status.report import Counts
from penstock.core.topic import topic_name_problem
from penstock.errors import ConfigurationError
from penstock.services.replay import Replay, ReplayDelivery
from penstock.services.state.wholetables import WholeTables, whole_tables
from penstock.services.step.tally import total
from penstock.services.task.task import task_name

__all__ = [
    "Range",
    "Rerun",
    "range_size",
    "refuse_existing",
    "rerun_service",
    "result_name",
]


@dataclass(frozen=True, slots=True)
class Range:
    """From where to where, in every input."""

    start: Start = EARLIEST
    end: End = LATEST


@dataclass(frozen=True, slots=True)
class Rerun:
    """What a run over the past did: its counts, and where its results are."""

    counts: Counts
    results: tuple[str, ...]
    dead_letters: str


def range_size(connection: Connection, inputs: Sequence[OnLog], over: Range) -> int:
    """Return how many offsets the range holds; records are at most as many."""
    topics = Topics(connection)
    ranges = (
        settled_range(topics, data.topic.name, start=over.start, end=over.end) for data in inputs
    )
    return sum(end - begin for found in ranges for begin, end in found.values())


def result_name(name: str, label: str) -> str:
    """Return the name of what takes the results instead; ConfigurationError: not by this label."""
    result = f"{name}.replay.{label}"
    if wrong := topic_name_problem(result):
        raise ConfigurationError(
            f"{result!r} cannot be the name of a topic: {wrong}",
            code="replay.label",
            hint="choose another label: --as LABEL",
        )
    return result


def refuse_existing(connection: Connection, names: Iterable[str], *, label: str) -> None:
    """Raise ConfigurationError ``replay.exists`` where a replay has left results in a topic."""
    topics = Topics(connection)
    if there := [name for name in names if topics.exists(name)]:
        raise ConfigurationError(
            f"the label {label!r} has been used: {', '.join(there)}",
            code="replay.exists",
            hint="choose another label: --as LABEL",
        )


def rerun_service(
    graph: Graph,
    service: Service,
    connection: Connection,
    *,
    over: Range,
    label: str,
    progress: Callable[[int], None] = lambda _: None,
) -> Rerun:
    """Run a service over a range; ``progress`` gets how many records were handled so far.

    Raises ConfigurationError ``replay.exists`` where a replay of this label has left results.
    """
    ledger = [graph.late_records] if service.has_late_records else []
    written = [*(data.topic for data in service.writes), *ledger, graph.dead_letters]
    results = {spec.name: replace(spec, name=result_name(spec.name, label)) for spec in written}
    dead = results[graph.dead_letters.name].name
    named = tuple(spec.name for spec in results.values() if spec.name != dead)
    refuse_existing(connection, named, label=label)
    Topics(connection).declare(list(results.values()))
    tallies: list[Counts] = []
    tables = _read_whole(connection, service)
    with Producer(connection) as producer:
        delivery = ReplayDelivery(
            producer.send,
            names={name: spec.name for name, spec in results.items()},
            flush=producer.flush,
        )
        for partitions in _tasks(connection, service):
            done = total(*tallies).received
            several = Replay(
                graph,
                service,
                {partition: _records(connection, partition, over) for partition in partitions},
                delivery=delivery,
                wait=sleep,
                tables=tables,
                progress=lambda handled, done=done: progress(done + handled),  # type: ignore[misc]
            )
            tallies.append(several.run(end_at=_end_at(over.end)))
    return Rerun(total(*tallies), named, dead)


def _read_whole(connection: Connection, service: Service) -> WholeTables:
    """Return the broadcast tables of a service as they are now."""
    tables = whole_tables(service)
    for topic, table in tables.items():
        for batch in LogReader(connection).batches(topic, when_trimmed="skip"):
            for raw in batch:
                table.apply(raw)
    return tables


def _tasks(connection: Connection, service: Service) -> list[list[Partition]]:
    """Return the partitions that one task of the service handles together, for each of them."""
    tasks: dict[str, list[Partition]] = {}
    for topic in (data.topic.name for data in service.reads):
        for number in sorted(Topics(connection).ends(topic, committed=True)):
            tasks.setdefault(task_name(service, (topic, number)), []).append((topic, number))
    return list(tasks.values())


def _records(connection: Connection, partition: Partition, over: Range) -> Iterator[RawRecord]:
    topic, number = partition
    batches = LogReader(connection).batches(
        topic, start=over.start, end=over.end, partitions=[number], when_trimmed="skip"
    )
    for batch in batches:
        yield from batch


def _end_at(end: End) -> datetime | None:
    """Return up to when the clock goes on behind the last record; None: it does not."""
    if isinstance(end, Instant):
        return end.at
    return datetime.now(UTC) if isinstance(end, Latest) else None
