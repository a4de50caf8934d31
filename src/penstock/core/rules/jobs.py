"""What `penstock check` says of jobs."""

import inspect
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from penstock.core.graph.data import Lake, Stream
from penstock.core.graph.graph import Graph
from penstock.core.graph.job import RUN, Job
from penstock.errors import Problem

__all__ = ["SHORTEST_REST", "job_problems"]

SHORTEST_REST = timedelta(seconds=1)
"""A run reads all there is: without a rest Spark would do nothing else."""


def job_problems(graph: Graph) -> Iterator[Problem]:
    """Yield every problem of every job."""
    for part in graph.parts:
        if isinstance(part, Job):
            yield from _parameters(part)
            yield from _spans(part)
            yield from _outputs(part)
            yield from _asked_by(part)


def _parameters(job: Job) -> Iterator[Problem]:
    try:
        given = inspect.signature(job.function).parameters.values()
    except (TypeError, ValueError):
        return
    frames = [each for each in given if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in given):
        return
    if len(frames) != len(job.reads):
        text = f"job {job.name!r} takes {len(frames)} DataFrames, but reads {len(job.reads)}"
        hint = "give it one parameter per input, in the same order"
        yield Problem("job.parameters", text, hint, job.place)
    others = [each for each in given if each.kind is inspect.Parameter.KEYWORD_ONLY]
    unknown = [each.name for each in others if each.name != RUN and each.default is each.empty]
    if unknown:
        text = f"job {job.name!r} takes {unknown[0]!r}, which nobody gives it"
        yield Problem("job.parameters", text, f"only {RUN!r} is given by name", job.place)


def _spans(job: Job) -> Iterator[Problem]:
    if not job.every:
        text = f"job {job.name!r}: every is zero"
        yield Problem("data.option", text, 'every="10m", for example', job.place)
    if job.rest < SHORTEST_REST:
        text = f"job {job.name!r}: rest is shorter than a second"
        yield Problem("data.option", text, 'rest="1m", for example', job.place)


def _outputs(job: Job) -> Iterator[Problem]:
    if not job.writes:
        text = f"job {job.name!r} writes nothing"
        yield Problem("job.writes", text, "name a stream or a table: writes=...", job.place)
    outputs: tuple[Any, ...] = job.writes
    for data in outputs:
        if isinstance(data, Lake):
            text = f"job {job.name!r} writes lake table {data.name!r}"
            hint = "write a stream, and archive that: app.archive(...)"
            yield Problem("job.writes", text, hint, job.place)
    kinds = [data.record.cls for data in job.writes]
    for data in job.writes:
        if kinds.count(data.record.cls) > 1:
            text = f"job {job.name!r} writes {data.record.name} to more than one stream or table"
            hint = "its records find their way by their type: give each its own"
            yield Problem("job.writes", text, hint, job.place)
            return


def _asked_by(job: Job) -> Iterator[Problem]:
    asking: tuple[Any, ...] = job.asked_by
    for data in asking:
        if not isinstance(data, Stream):
            text = f"job {job.name!r} is asked by {data.name!r}, which is a {data.kind}"
            yield Problem("job.asked-by", text, "name a stream", job.place)
        elif data in job.writes:
            text = f"job {job.name!r} is asked by {data.name!r}, which it writes itself"
            yield Problem("job.asked-by", text, "name another stream", job.place)
