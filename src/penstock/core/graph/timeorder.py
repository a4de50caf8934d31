"""Several inputs of a service that are read as one, in the order of event time."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from penstock.core.options import span_of

__all__ = ["InTimeOrder", "by_event_time"]


@dataclass(frozen=True, slots=True)
class InTimeOrder:
    """Inputs that are read in the order of event time; ``by_event_time`` makes it."""

    reads: tuple[Any, ...]
    waits: timedelta


def by_event_time(*reads: Any, waits: str | timedelta = "0s") -> InTimeOrder:
    """Read several streams and tables in the order of event time, as far as records are there.

    Without it a backlog of one stream may be handled before that of another. With it, each record
    waits until every other input has a record with the same partition number, or has no more: then
    the earliest is handled. An input at its end is waited for as long as ``waits`` says, one whose
    records are on their way at most 5 s. Late records are handled when they come. Where an input
    has no event time, the time counts at which records were written, for all inputs.

    Examples:
        >>> @app.service(reads=by_event_time(readings, copies), writes=alarms)
        ... def compare(reading: Reading) -> Alarm:
        ...     return Alarm(reading.device, f"{reading.celsius} °C")
    """
    return InTimeOrder(reads, span_of(waits))
