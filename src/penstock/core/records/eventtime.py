"""Event time: which one a record has, and how that of a stream follows its records.

A stream says how much disorder it allows, and what the silence of a partition means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Any, Literal

from penstock.core.instants import micros
from penstock.core.options import span_of
from penstock.core.records.schema import Scalar, Schema

__all__ = ["IDLE_AFTER", "EventTime", "Follows", "event_time_of"]

Follows = Literal["slowest", "newest"]
IDLE_AFTER = timedelta(minutes=1)
_MILLISECOND = 1000


@dataclass(frozen=True, slots=True, init=False)
class EventTime:
    """How the watermark of a stream follows the event times of its records.

    Spans are texts such as ``"30s"``, or timedeltas; the value holds timedeltas. ``penstock check``
    reports a span that cannot be read, with the stream that uses it.

    Examples:
        >>> steady = EventTime(disorder="30s", closes_after="10m")
        >>> late = app.stream("late", Reading, event_time=steady)
        >>> late.event_time.disorder
        datetime.timedelta(seconds=30)
    """

    disorder: timedelta | None
    """How far a record may be behind the newest event time and still be on time."""
    idle_after: timedelta | None
    """How long a partition may be silent before it stops holding back the watermark."""
    closes_after: timedelta | None
    """How long all partitions may be silent before the watermark moves on with the clock."""
    ahead: timedelta | None
    """How far ahead of the clock an event time may be; None: no limit."""
    follows: Follows
    """Which partition the watermark follows: the slowest, or the one with the newest record."""

    def __init__(
        self,
        *,
        disorder: str | timedelta | None = None,
        idle_after: str | timedelta | None = IDLE_AFTER,
        closes_after: str | timedelta | None = None,
        ahead: str | timedelta | None = None,
        follows: Follows = "slowest",
    ) -> None:
        """Read the spans."""
        spans = {
            "disorder": disorder,
            "idle_after": idle_after,
            "closes_after": closes_after,
            "ahead": ahead,
        }
        for name, span in spans.items():
            object.__setattr__(self, name, None if span is None else span_of(span))
        object.__setattr__(self, "follows", follows)


def event_time_of(schema: Schema) -> Callable[[Any], int] | None:
    """Return what reads the event time of a record, in microseconds since 1970; None: it has none.

    A field of whole numbers holds milliseconds.
    """
    field = schema.field(schema.time) if schema.time else None
    if field is None:
        return None
    read = attrgetter(field.name)
    if field.type == Scalar("int"):
        return lambda record: read(record) * _MILLISECOND
    return lambda record: micros(read(record))
