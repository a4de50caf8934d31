"""Panes as records: the type that holds the results of an aggregation, made from its declaration.

A record of a pane stream has, in this order: the ``by`` fields; ``window_start`` and
``window_end``, unless the window is everything; the aggregates; ``pane`` (early, on_time, late),
``pane_index``, ``pane_last``; ``withdrawn``: true on a record that takes an earlier result back;
and ``at``, the event time of the pane. A table has no ``withdrawn`` and no ``at``: a result that is
taken back is deleted from it, or replaced. The headers of a record of a stream say the facts of its
pane again, for consumers who route without decoding.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from penstock.core.expression.values.plainvalues import annotation_of
from penstock.core.panes.windows import CountWindows, GlobalWindow
from penstock.core.records.deadletter import HEADER_PREFIX
from penstock.core.records.record import RecordType, record, record_type
from penstock.core.rollup.resolve import Rollup

__all__ = ["PANE_FIELDS", "Shape", "has_instants", "pane_headers", "pane_record_type"]

Shape = Literal["stream", "table"]

_TIMING = Literal["early", "on_time", "late"]
PANE_FIELDS = (
    "window_start",
    "window_end",
    "pane",
    "pane_index",
    "pane_last",
    "withdrawn",
    "at",
)
"""Names that no ``by`` field and no aggregate may have."""


def has_instants(rollup: Rollup) -> bool:
    """Whether its windows begin and end at instants, and its panes have an event time."""
    return not isinstance(rollup.windowing.windows, CountWindows | GlobalWindow)


def pane_record_type(name: str, rollup: Rollup, shape: Shape) -> RecordType[Any]:
    """Return the type of the records that hold an aggregation's panes."""
    annotations = dict(_annotations(rollup, shape))
    key = [group.name for group in rollup.groups]
    if "window_start" in annotations and (shape == "table" or not key):
        key.append("window_start")
    time = "at" if shape == "stream" and has_instants(rollup) else None
    title = "".join(word.capitalize() for word in name.replace("-", "_").split("_"))
    made = type(title, (), {"__annotations__": annotations, "__module__": __name__})
    found: RecordType[Any] | None = record_type(record(key=tuple(key), time=time)(made))
    if found is None:
        raise TypeError(f"{name}: no record type")
    return found


@lru_cache(maxsize=1024)
def pane_headers(
    timing: str, numbers: tuple[int, int], *, last: bool, withdrawn: bool
) -> tuple[tuple[str, bytes], ...]:
    """Return the headers of a record; the numbers of a pane are its index and that on time."""
    index, on_time_index = numbers
    facts = {
        "pane": timing,
        "pane.index": str(index),
        "pane.on-time-index": str(on_time_index),
        "pane.last": str(last).lower(),
        "pane.withdrawn": str(withdrawn).lower(),
    }
    return tuple((HEADER_PREFIX + name, text.encode()) for name, text in facts.items())


def _annotations(rollup: Rollup, shape: Shape) -> Iterator[tuple[str, Any]]:
    for group in rollup.groups:
        yield group.name, annotation_of(group.type)
    if not isinstance(rollup.windowing.windows, GlobalWindow):
        kind = int if isinstance(rollup.windowing.windows, CountWindows) else datetime
        yield "window_start", kind
        yield "window_end", kind
    for measure in rollup.measures:
        kind = annotation_of(measure.gives.type)
        yield measure.name, kind | None if measure.gives.nullable else kind
    yield "pane", _TIMING
    yield "pane_index", int
    yield "pane_last", bool
    if shape == "stream":
        yield "withdrawn", bool
        yield "at", datetime if has_instants(rollup) else datetime | None
