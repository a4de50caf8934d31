"""Archives of streams: the columns they add to a record, and what must hold where they are used."""

from collections.abc import Iterator
from typing import Any

from penstock.core.graph.data import Archive
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, RealTime, Service
from penstock.core.records.days import Day
from penstock.errors import Problem

__all__ = [
    "APPENDED_AT",
    "APPENDED_DAY",
    "COORDINATES",
    "OFFSET",
    "PARTITION",
    "PARTITIONED_BY",
    "archive_problems",
]

PARTITION, OFFSET, APPENDED_AT = "_partition", "_offset", "_appended_at"
PARTITIONED_BY = (Day(APPENDED_AT),)
"""By the log's own time: each partition of the table is then a stretch of the log."""

APPENDED_DAY = PARTITIONED_BY[0].column
COORDINATES = (PARTITION, OFFSET, APPENDED_AT, APPENDED_DAY)
"""Where a record stood on the log, when it was appended, and on which day, in UTC."""


def archive_problems(graph: Graph) -> Iterator[Problem]:
    """Yield what is wrong with archives, and with how streams are read with their history."""
    for data in graph.data:
        if isinstance(data, Archive):
            yield from _archive(data)
    for part in graph.parts:
        for data in part.outputs:
            if data.archive:
                text = f"{part.kind} {part.name!r} writes {data.name!r} with its history"
                yield Problem("history.written", text, "write the stream itself", part.place)
            if isinstance(data, Archive) and part.name != data.filling:
                text = f"{part.kind} {part.name!r} writes the archive {data.name!r}"
                hint = f"{data.filling!r} fills it; declare a table of your own: app.lake(...)"
                yield Problem("archive.written", text, hint, part.place)
        if isinstance(part, Pipeline | Service):
            yield from _read(part)


def _archive(archive: Archive[Any]) -> Iterator[Problem]:
    for name in COORDINATES:
        if archive.record.schema.field(name):
            text = f"archive {archive.name!r}: {archive.record.name} has a field {name!r}"
            hint = f"these columns are reserved for the archive: {', '.join(COORDINATES)}"
            yield Problem("archive.field", text, hint, archive.place)


def _read(part: Pipeline | Service) -> Iterator[Problem]:
    for stream in part.reads:
        if stream.archive is None:
            continue
        reads = f"{part.kind} {part.name!r} reads {stream.name!r} with its history"
        if isinstance(part, Service):
            text = f"{reads}: a service reads the log alone"
            hint = 'read the stream itself, or compute it on Spark: a pipeline, or on="spark"'
            yield Problem("history.service", text, hint, part.place)
        elif isinstance(part.trigger, RealTime):
            yield Problem(
                "pipeline.real-time", f"{reads} in real-time mode", "use micro_batch()", part.place
            )
        if part.aggregation and part.aggregation.windowed.time == "processing":
            text = f"{reads} into windows of processing time: all of it would arrive now"
            yield Problem("history.time", text, "give the records an event time", part.place)
