"""What can be wrong with the declaration of a lake table, and with how it is read."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from penstock.core.graph.data import Archive, Lake
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline
from penstock.core.hints import did_you_mean
from penstock.core.records.days import Day
from penstock.core.records.schema import Choice, Field, Scalar
from penstock.errors import Problem

__all__ = ["SHORTEST_HISTORY", "lake_problems"]

SHORTEST_HISTORY = timedelta(hours=1)
"""A write or a query that is under way needs the files of the version it began with."""

_FEW_VALUES = {"bool", "int", "text", "date"}
"""What a table may be partitioned by as it is: of anything else there are too many values."""


def lake_problems(graph: Graph) -> Iterator[Problem]:
    """Yield the problems of all lake tables."""
    for data in graph.data:
        if isinstance(data, Lake):
            if not isinstance(data, Archive):
                yield from _partitions(data)
            yield from _spans(data)
    yield from _overwritten(graph)


def _partitions(lake: Lake[Any]) -> Iterator[Problem]:
    schema = lake.record.schema
    names = [field.name for field in schema.fields]
    if not names:
        return
    parts: tuple[Any, ...] = lake.partition_by
    if unknown := [part for part in parts if not isinstance(part, str | Day)]:
        text = f"lake table {lake.name!r} is partitioned by {unknown[0]!r}, which is not a field"
        yield Problem("lake.partition", text, did_you_mean(unknown[0], names), lake.place)
        return
    for part in lake.partition_by:
        name = part.field if isinstance(part, Day) else part
        field = schema.field(name)
        if field is None:
            text = f"lake table {lake.name!r} is partitioned by {name!r}, which is not a field"
            yield Problem("lake.partition", text, did_you_mean(name, names), lake.place)
        elif wrong := _unfit(field, part, event_time=name == schema.time, names=names):
            text = f"lake table {lake.name!r} is partitioned by {part}: {wrong[0]}"
            yield Problem("lake.partition", text, wrong[1], lake.place)
    columns = lake.partition_columns
    if len(set(columns)) < len(columns):
        text = f"lake table {lake.name!r} has a partition column twice: {', '.join(columns)}"
        yield Problem("lake.partition", text, "name each once", lake.place)


def _unfit(
    field: Field, part: str | Day, *, event_time: bool, names: list[str]
) -> tuple[str, str] | None:
    """Return why a field cannot partition a table, and what to do; None: it can."""
    if isinstance(part, Day):
        if field.type != Scalar("instant") and not event_time:
            return f"{field.name} is {field.type}, not an instant", "name a datetime field"
        if part.column in names:
            return f"the record has a field {part.column!r} already", "partition by that field"
        return None
    if event_time or field.type == Scalar("instant"):
        why = "every instant would be a partition of its own"
        return why, f'use its day: partition_by=day("{field.name}")'
    fits = isinstance(field.type, Choice) or str(field.type) in _FEW_VALUES
    return None if fits else (f"it is {field.type}", "use a text, a whole number, a date or a bool")


def _spans(lake: Lake[Any]) -> Iterator[Problem]:
    schema = lake.record.schema
    if lake.retention is not None:
        if not schema.time and schema.fields:
            text = f"lake table {lake.name!r} has a retention, but {schema.name} has no event time"
            hint = f'declare one: @record(time="...") above class {schema.name}'
            yield Problem("lake.no-time", text, hint, lake.place)
        elif schema.time and Day(schema.time) not in lake.partition_by:
            text = f"lake table {lake.name!r} has a retention, but no partition per day"
            hint = f'expired days are deleted as a whole: partition_by=day("{schema.time}")'
            yield Problem("lake.retention", text, hint, lake.place)
        if lake.retention <= timedelta():
            text = f"lake table {lake.name!r} has a retention of zero"
            yield Problem("data.option", text, "retention=None keeps records for ever", lake.place)
    if lake.history < SHORTEST_HISTORY:
        text = f"lake table {lake.name!r} keeps too little history for running writes and queries"
        yield Problem("data.option", text, 'an hour or more: history="1h"', lake.place)


def _overwritten(graph: Graph) -> Iterator[Problem]:
    """Yield pipelines that follow a table of which every batch makes another one."""
    pipelines = [part for part in graph.parts if isinstance(part, Pipeline)]
    anew = {part.writes.name: part.name for part in pipelines if part.output == "complete"}
    for part in pipelines:
        for data in part.reads:
            if isinstance(data, Lake) and data not in part.lookups and data.name in anew:
                text = f"pipeline {part.name!r} follows {data.name!r}, which {anew[data.name]!r} "
                hint = "write it with output 'append', or read it beside a stream"
                text += "replaces with each batch"
                yield Problem("lake.overwritten", text, hint, part.place)
