"""Reads the arguments of declarations that are values: what was given, or the default.

A wrong argument is reported as a problem, and the default takes its place.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, NamedTuple, get_args

from penstock.core.graph.changes import rows_state
from penstock.core.graph.data import MOST_ROUNDS, Feedback, Table
from penstock.core.graph.parts import DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT, MicroBatch, RealTime
from penstock.core.graph.policy import ErrorPolicy, Retry
from penstock.core.graph.signature import is_async
from penstock.core.graph.state import StateSpec
from penstock.core.graph.timeorder import InTimeOrder
from penstock.core.operators.broadcast import Broadcast
from penstock.core.options import Options
from penstock.core.records.eventtime import IDLE_AFTER, EventTime, Follows
from penstock.core.topic import TopicSpec

__all__ = [
    "Inputs",
    "Outputs",
    "read_calls",
    "read_changes",
    "read_event_time",
    "read_inputs",
    "read_outputs",
    "read_policy",
    "read_trigger",
]


def read_event_time(given: Any, options: Options) -> EventTime:
    """Return how the watermark follows the records: as given, or the default."""
    if given is None:
        return EventTime()
    if not isinstance(given, EventTime):
        hint = 'event_time=EventTime(disorder="30s"), for example'
        options.wrong("event_time", f"{given!r} is not an EventTime", hint)
        return EventTime()
    return EventTime(
        disorder=options.maybe_span("event_time.disorder", given.disorder),
        idle_after=options.maybe_span("event_time.idle_after", given.idle_after, IDLE_AFTER),
        closes_after=options.maybe_span("event_time.closes_after", given.closes_after),
        ahead=options.maybe_span("event_time.ahead", given.ahead),
        follows=options.word("event_time.follows", given.follows, get_args(Follows), "slowest"),
    )


def read_trigger(given: Any, options: Options) -> MicroBatch | RealTime:
    """Return when a pipeline takes a batch: as given, or the default."""
    if given is not None and not isinstance(given, MicroBatch | RealTime):
        hint = 'trigger=micro_batch(every="10s"), or real_time()'
        options.wrong("trigger", f"{given!r} is not a trigger", hint)
        return MicroBatch()
    return given or MicroBatch()


def read_calls(
    function: Any, concurrency: Any, timeout: Any, options: Options
) -> tuple[int, timedelta]:
    """Return how many calls of a service may run at a time, and how long each may take."""
    for option, given in (("concurrency", concurrency), ("timeout", timeout)):
        if given is not None and not is_async(function):
            text = "only async services take it: others handle one record after the other"
            hint = f"remove {option}=..., or write async def"
            options.wrong(option, text, hint, code="service.not-async")
    calls, longest = DEFAULT_CONCURRENCY, DEFAULT_TIMEOUT
    if concurrency is not None:
        calls = options.count("concurrency", concurrency, calls)
    if timeout is not None:
        longest = options.span("timeout", timeout, longest)
    return calls, longest


def read_policy(given: Any, options: Options) -> ErrorPolicy:
    """Return what a service does with records that fail: as given, or the default."""
    if given is None or isinstance(given, ErrorPolicy):
        return given or ErrorPolicy()
    shown = "retry(...)" if isinstance(given, Retry) else repr(given)
    meant = shown if isinstance(given, str | Retry) else '"stop"'
    hint = f"say which: errors=on_error(decode=..., process={meant}, produce=...)"
    text = f"{shown} does not say which failures it is for"
    options.wrong("errors", text, hint, code="service.errors")
    return ErrorPolicy()


def read_changes(reads: Iterable[Any], asked: Iterable[Any]) -> dict[str, StateSpec]:
    """Return the topics of tables whose changes a service asks for, and what keeps their rows."""
    kinds = list(asked)
    return {
        data.topic.name: StateSpec(rows_state(data.name), data.record.cls)
        for data in reads
        if isinstance(data, Table) and data.record.cls in kinds
    }


class Inputs(NamedTuple):
    """What a service reads."""

    plain: tuple[Any, ...]
    """Record by record."""
    whole: tuple[Any, ...]
    """Tables that each worker has whole."""
    waits: timedelta | None
    """How long inputs wait for each other; None: they are not read in the order of time."""


def read_inputs(reads: Any, options: Options) -> Inputs:
    """Return what a service reads, as it was given."""
    waits = None
    if isinstance(reads, InTimeOrder):
        waits, reads = options.span("reads.waits", reads.waits, timedelta()), reads.reads
    inputs = tuple(reads) if isinstance(reads, tuple | list) else (reads,)
    plain = tuple(each for each in inputs if not isinstance(each, Broadcast))
    whole = tuple(each.table for each in inputs if isinstance(each, Broadcast))
    return Inputs(plain, whole, waits)


class Outputs(NamedTuple):
    """What a service writes."""

    plain: tuple[Any, ...]
    feedback: tuple[str, ...]
    """Names of what it writes back on purpose."""
    rounds: tuple[tuple[str, int], ...]
    """Their topics, and how often a record may come to each."""


def read_outputs(writes: Any, options: Options) -> Outputs:
    """Return what a service writes, and what of it goes back on purpose."""
    outputs = tuple(writes) if isinstance(writes, tuple | list) else (writes,)
    back = [each for each in outputs if isinstance(each, Feedback)]
    plain = tuple(each.data if isinstance(each, Feedback) else each for each in outputs)
    rounds = []
    for each in back:
        most = options.count("feedback.most", each.most, MOST_ROUNDS)
        if most < 1:
            options.wrong("feedback.most", f"{most} rounds are none", "give it 1 or more")
        if isinstance(topic := getattr(each.data, "topic", None), TopicSpec):
            rounds.append((topic.name, most))
    names = tuple(str(getattr(each.data, "name", each.data)) for each in back)
    return Outputs(plain, names, tuple(rounds))
