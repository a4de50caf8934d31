"""A service run again over a finished range of the past, into topics of its own.

State starts empty, so the results are those of the range alone. The records of several inputs are
handled in the order of their timestamps, partition by partition; results are written at least
once, to topics that nobody else writes.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from penstock.backbone.connection import Connection
from penstock.backbone.logrange import EARLIEST, LATEST, End, Last, Start
from penstock.backbone.logreader import LogReader
from penstock.backbone.logrecord import RawRecord
from penstock.backbone.logspan import starts, stops
from penstock.backbone.producer import Producer
from penstock.backbone.topics import Topics
from penstock.core.graph import Graph, OnLog, Service
from penstock.core.report import Counts
from penstock.core.topic import TopicSpec, topic_name_problem
from penstock.errors import ConfigurationError
from penstock.services.step import Step
from penstock.services.tally import total

__all__ = [
    "Range",
    "Rerun",
    "range_size",
    "refuse_existing",
    "rerun_service",
    "result_name",
]

_BATCH = 2000


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
    count = 0
    for topic in (data.topic.name for data in inputs):
        ends = topics.ends(topic, committed=True)
        last = stops(topics, topic, end=over.end, ends=ends, follow=False)
        if isinstance(over.start, Last):
            count += sum(min(over.start.count, high - low) for low, high in ends.values())
            continue
        first = starts(topics, topic, start=over.start, ends=ends)
        count += sum(max(0, (last[number] or at) - at) for number, at in first.items())
    return count


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
            f"there are results of a replay {label!r} already: {', '.join(there)}",
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
    written = [data.topic for data in service.writes] + [graph.dead_letters]
    results = {spec.name: replace(spec, name=result_name(spec.name, label)) for spec in written}
    dead = results[graph.dead_letters.name].name
    named = tuple(spec.name for spec in results.values() if spec.name != dead)
    refuse_existing(connection, named, label=label)
    Topics(connection).declare(list(results.values()))
    tallies: list[Counts] = []
    done = 0
    with Producer(connection) as producer:
        send = _sender(producer, results)
        for number in range(max(data.topic.partitions for data in service.reads)):
            step = Step(graph, service, clock=lambda: datetime.now(UTC))
            records = _merged(connection, service.reads, number, over)
            while batch := list(islice(records, _BATCH)):
                for topic, several in _runs(batch):
                    step.run(topic, several, send)
                done += len(batch)
                progress(done)
            step.tally.commit()
            tallies.append(step.tally.committed())
    return Rerun(total(*tallies), named, dead)


def _sender(producer: Producer, results: dict[str, TopicSpec]) -> Any:
    def send(topic: str, /, **record: Any) -> None:
        producer.send(results[topic].name, **record)

    return send


def _merged(
    connection: Connection, inputs: tuple[OnLog, ...], number: int, over: Range
) -> Iterator[RawRecord]:
    """Give the records of one partition number of all inputs in the order of their timestamps."""
    reader = LogReader(connection)
    several = [
        _flat(reader, data.topic.name, number, over)
        for data in inputs
        if number < data.topic.partitions
    ]
    return heapq.merge(*several, key=lambda raw: raw.timestamp()[1])


def _flat(reader: LogReader, topic: str, number: int, over: Range) -> Iterator[RawRecord]:
    batches = reader.batches(
        topic, start=over.start, end=over.end, partitions=[number], when_trimmed="skip"
    )
    for batch in batches:
        yield from batch


def _runs(batch: list[RawRecord]) -> Iterator[tuple[str, list[RawRecord]]]:
    """Cut a batch where its topic changes."""
    topic, several = "", list[RawRecord]()
    for raw in batch:
        if several and raw.topic() != topic:
            yield topic, several
            several = []
        topic = raw.topic() or ""
        several.append(raw)
    yield topic, several
