"""From a record to what the pane machine takes: its group, its event time, its values."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from penstock.core.expression import compile_predicate, compile_row
from penstock.core.expression.values.times import micros_of
from penstock.core.panes.packing import decode, encode
from penstock.core.records.schema import Scalar, Schema
from penstock.core.rollup.plainvalues import from_plain, to_plain
from penstock.core.rollup.resolve import Group, Measure, Rollup, Step

__all__ = ["GroupKey", "RollupReader", "event_time_of"]

Row = Any
"""A record, or what a selection made of it."""

_MILLISECOND = 1000


class GroupKey:
    """The groups of a record as bytes, which buckets are filled by, and back."""

    def __init__(self, groups: tuple[Group, ...]) -> None:
        self._back = [from_plain(group.type) for group in groups]

    def pack(self, plain: list[Any]) -> bytes:
        """Return plain values, one for each group, as bytes."""
        return encode(plain)

    def unpack(self, packed: bytes) -> list[Any]:
        """Return the values as a record holds them."""
        return [back(value) for back, value in zip(self._back, decode(packed), strict=True)]


class RollupReader:
    """Compiled once; then one call for each record."""

    def __init__(self, rollup: Rollup) -> None:
        self._steps = [_step(step) for step in rollup.steps]
        self._groups = [
            (compile_row(group.expression), to_plain(group.type)) for group in rollup.groups
        ]
        self._measures = [_measure(measure) for measure in rollup.measures]
        self._by_clock = rollup.rule is None
        self._time = event_time_of(rollup.schema)

    def time(self, record: Any, clock: int) -> int:
        """Return the event time, or the clock where windows are in processing time.

        It is 0 where the record has none.
        """
        return clock if self._by_clock else self._time(record)

    def read(self, record: Any, time: int) -> tuple[bytes, list[Any]] | None:
        """Return the group's key and the values; None: it was not selected."""
        row = record
        for step in self._steps:
            row = step(row)
            if row is None:
                return None
        key = encode([plain(value(row)) for value, plain in self._groups])
        return key, [measure(row, time) for measure in self._measures]


def event_time_of(schema: Schema) -> Callable[[Any], int]:
    """Return what gives a record's event time in microseconds since 1970."""
    if schema.time is None:
        return lambda _record: 0
    time, field = attrgetter(schema.time), schema.field(schema.time)
    if field is not None and field.type == Scalar("int"):
        return lambda record: time(record) * _MILLISECOND
    return lambda record: micros_of(time(record))


def _step(step: Step) -> Callable[[Row], Row | None]:
    if step.condition is not None:
        holds = compile_predicate(step.condition)
        return lambda row: row if holds(row) else None
    names = [name for name, _ in step.fields]
    selected = msgspec.defstruct("Selected", names)
    values = [compile_row(expression) for _, expression in step.fields]
    return lambda row: selected(*(value(row) for value in values))


def _measure(measure: Measure) -> Callable[[Row, int], Any]:
    if measure.expression is None:
        return lambda _row, _time: True
    value, plain = compile_row(measure.expression), to_plain(measure.type)
    if measure.form.takes == "presence":
        return lambda row, _time: None if value(row) is None else True
    if measure.form.stamped:
        return lambda row, time: (time, plain(value(row)))
    return lambda row, _time: plain(value(row))
