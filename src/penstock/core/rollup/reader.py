"""From a record to what the pane machine takes: its group, its event time, its values."""

from collections.abc import Callable
from typing import Any

from penstock.core.derived.compiled import compile_step
from penstock.core.expression import compile_row
from penstock.core.expression.values.plainvalues import from_plain, to_plain
from penstock.core.panes.packing import decode, encode
from penstock.core.records.eventtime import event_time_of
from penstock.core.rollup.resolve import Group, Measure, Rollup

__all__ = ["GroupKey", "RollupReader", "compile_measure"]

Row = Any
"""A record, or what a selection made of it."""


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
        self._steps = [compile_step(step) for step in rollup.steps]
        self._groups = [
            (compile_row(group.expression), to_plain(group.type)) for group in rollup.groups
        ]
        self._measures = [compile_measure(measure) for measure in rollup.measures]
        self._by_clock = rollup.rule is None
        self._time = event_time_of(rollup.schema) or _no_time

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


def _no_time(_record: Any) -> int:
    return 0


def compile_measure(measure: Measure) -> Callable[[Row, int], Any]:
    """Return what reads the value of an aggregate, as plain data, of a record and its time."""
    if measure.expression is None:
        return lambda _row, _time: True
    value, plain = compile_row(measure.expression), to_plain(measure.type)
    if measure.form.takes == "presence":
        return lambda row, _time: None if value(row) is None else True
    if measure.form.stamped:
        return lambda row, time: (time, plain(value(row)))
    return lambda row, _time: plain(value(row))
