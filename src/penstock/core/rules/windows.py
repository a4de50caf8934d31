"""What `penstock check` says of windowed aggregations."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from penstock.core.expression.tree import Field
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Pipeline, Service
from penstock.core.panes.triggers import AfterWatermark, Repeat
from penstock.core.panes.windows import CountWindows, GlobalWindow, SlidingWindows
from penstock.core.rollup.aggregation import Aggregation, Readable
from penstock.core.rollup.panerecord import PANE_FIELDS
from penstock.core.rollup.resolve import Group, Rollup, read_rollup
from penstock.core.rollup.shape import shape_problems
from penstock.core.rollup.windowing import Unreadable
from penstock.errors import Problem

__all__ = ["aggregation_problems"]


def aggregation_problems(graph: Graph) -> Iterator[Problem]:
    """Yield what is wrong with the windowed aggregations of an application."""
    for part in graph.parts:
        if isinstance(part, Pipeline | Service) and part.aggregation:
            aggregation = part.aggregation
            if shape_problems(aggregation):
                continue  # said where it was declared
            for problem in (
                *_spans(aggregation),
                *_names(aggregation),
                *_windows(aggregation),
                *_output(part),
            ):
                where = problem.place or aggregation.place
                yield Problem(problem.code, f"{part.name}: {problem.message}", problem.hint, where)


def _spans(aggregation: Aggregation) -> Iterator[Problem]:
    """Yield what is wrong with the numbers in windows and triggers."""
    windowing = aggregation.windowed.windowing
    for what, value in (
        *_numbers("windows", windowing.windows),
        *_numbers("trigger", windowing.trigger),
    ):
        if isinstance(value, Unreadable):
            yield Problem("window.span", f"{what}: {value.problem}", 'write "90s", "5m" or "1h"')
        elif value < 1 and not what.endswith((".offset", ".delay")):
            counts = what.endswith(".count") or isinstance(windowing.windows, CountWindows)
            hint = "give it 1 or more" if counts else 'give it some time: "1m", for example'
            yield Problem("window.span", f"{what} is {value}", hint)
    if isinstance(windowing.lateness, Unreadable):
        hint = 'write "10m", or "for ever"'
        yield Problem("window.span", f"lateness: {windowing.lateness.problem}", hint)
    windows = windowing.windows
    if isinstance(windows, SlidingWindows) and windows.period > windows.size >= 1:
        text = "sliding windows begin further apart than they are long: records between are lost"
        yield Problem("window.span", text, "give every=... at most the size")


def _numbers(where: str, value: Any) -> Iterator[tuple[str, int]]:
    for field in fields(value):
        inner, name = getattr(value, field.name), f"{where}.{field.name}"
        if isinstance(inner, int):
            yield name, inner
        elif isinstance(inner, tuple):
            for each in inner:
                yield from _numbers(where, each)
        elif inner is not None:
            yield from _numbers(where, inner)


def _names(aggregation: Aggregation) -> Iterator[Problem]:
    names = [name for name, _ in (*aggregation.windowed.by, *aggregation.aggregates)]
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem("aggregate.name", f"two results are called {name!r}", "rename one")
        if name in PANE_FIELDS:
            hint = f"these names are reserved for panes: {', '.join(PANE_FIELDS)}"
            yield Problem("aggregate.name", f"a result is called {name!r}", hint)
    if not aggregation.aggregates:
        yield Problem("aggregate.none", "it has no aggregates", ".aggregate(records=count())")


def _windows(aggregation: Aggregation) -> Iterator[Problem]:
    windowed, schema = aggregation.windowed, aggregation.stream.record.schema
    windowing = windowed.windowing
    counted = isinstance(windowing.windows, CountWindows)
    if windowed.time == "event" and schema.time is None and schema.fields and not counted:
        text = f"stream {aggregation.stream.name!r} has no event time"
        hint = f'@record(time="...") above class {schema.name}, or .window(..., time="processing")'
        yield Problem("window.no-time", text, hint)
    if isinstance(windowing.windows, GlobalWindow) and _waits_for_the_end(windowing.trigger):
        text = "a window over everything has no end, and its trigger waits for it"
        yield Problem("window.endless", text, ".trigger(every(...)) or .trigger(every_record())")


def _waits_for_the_end(trigger: Any) -> bool:
    if isinstance(trigger, Repeat):
        return _waits_for_the_end(trigger.inner)
    return isinstance(trigger, AfterWatermark) and trigger.early is None


def _output(part: Pipeline | Service) -> Iterator[Problem]:
    rollup = read_rollup(part.aggregation) if part.aggregation else []
    if not isinstance(rollup, Rollup):
        return
    data = part.writes if isinstance(part, Pipeline) else part.writes[0]
    if data.kind == "table":
        if rollup.windowing.mode == "discarding":
            text = f"table {data.name!r} would hold only the last part of each window"
            yield Problem("table.discarding", text, "accumulate, or write a stream")
        if not data.record.schema.key:
            text = f"table {data.name!r} would have one row and no key"
            yield Problem("table.no-key", text, "give .window(..., by=...) a field")
    if isinstance(part, Service) and part.aggregation:
        yield from _home(rollup, part.aggregation.stream)


def _home(rollup: Rollup, stream: Readable) -> Iterator[Problem]:
    """Yield a problem where records of one group may be in several tasks of a service."""
    by = {_field(group, rollup) for group in rollup.groups}
    key = stream.record.schema.key
    if stream.topic.partitions > 1 and (
        stream.topic.partitioning != "key" or not key or not by.issuperset(key)
    ):
        keyed = f"keyed by {', '.join(key)}" if key else "not keyed"
        text = f"a service needs each group in one partition, but {stream.name!r} is {keyed}"
        hint = f'on="spark", or by=({", ".join(map(repr, key))}, ...)' if key else 'on="spark"'
        yield Problem("window.home", text, hint)


def _field(group: Group, rollup: Rollup) -> str | None:
    """Return the field of the stream that a group is, or None where it is computed."""
    root = group.expression.root
    for step in reversed(rollup.steps):
        if step.fields and isinstance(root, Field):
            root = dict(step.fields)[root.name].root
    return root.name if isinstance(root, Field) else None
