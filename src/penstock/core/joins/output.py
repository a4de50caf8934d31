"""The results of a join: their type, and what makes one of a row of each side.

Without a selection a result has the fields that the sides were joined on, and the record of each
side under the name of that side. They have an event time too, ``at``; where results on a stream can
be withdrawn, they say whether they are: ``withdrawn``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import msgspec

from penstock.core.derived.compiled import compile_step
from penstock.core.derived.steps import SelectionStep
from penstock.core.expression import compile_row
from penstock.core.expression.values.times import from_micros
from penstock.core.operators.marks import time_header
from penstock.core.operators.operator import Result, Shape
from penstock.core.records.names import type_name
from penstock.core.records.record import RecordType, made_record
from penstock.core.records.schema import Field, Scalar, Schema

__all__ = ["AT", "WITHDRAWN", "Output", "OutputPlan", "ResultKey", "deletion"]

AT, WITHDRAWN = "at", "withdrawn"
"""Fields that results have by themselves; no other may have such a name."""


def deletion(key: bytes, time: int) -> Result:
    """Return the deletion of a row of results, which says in a header when it was deleted."""
    return Result("delete", None, time, time_header(time), key)


@dataclass(frozen=True, slots=True)
class ResultKey:
    """A field that results have beside the sides, and where it is read."""

    field: Field
    left: str
    right: str | None
    """None: the right side does not have it."""


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """Everything about the results that does not depend on their name."""

    names: tuple[str, str]
    key: tuple[ResultKey, ...]
    steps: tuple[SelectionStep, ...]
    schema: Schema
    """Without ``at`` and ``withdrawn``."""
    withdraws: bool
    """Whether a result may be withdrawn."""

    def record(self, name: str, shape: Shape) -> RecordType[Any]:
        """Return the type of the results."""
        fields = list(self.schema.fields)
        if shape == "stream" and self.withdraws:
            fields.append(Field(name=WITHDRAWN, type=Scalar("bool")))
        fields.append(Field(name=AT, type=Scalar("instant")))
        return made_record(
            replace(self.schema, name=type_name(name), fields=tuple(fields), time=AT)
        )


class Output:
    """Makes results. ``make`` returns None where a condition leaves one out."""

    def __init__(self, plan: OutputPlan, record: RecordType[Any]) -> None:
        names = {field.name for field in record.schema.fields}
        self.withdraws = WITHDRAWN in names
        """Whether results say that they are withdrawn: in a table their rows are deleted."""
        self._make = record.cls
        self._key = [
            (each.field.name, attrgetter(each.left), attrgetter(each.right or each.left))
            for each in plan.key
        ]
        self._names = plan.names
        self._rows = _made_by(plan) if plan.steps else self._pair

    def make(self, left: Any, right: Any, time: int, *, withdrawn: bool = False) -> Any | None:
        """Return the result of two rows, of which one may be missing."""
        if left is not None:
            found = {name: read(left) for name, read, _ in self._key}
        else:
            found = {name: read(right) for name, _, read in self._key}
        values = self._rows(found, left, right)
        if values is None:
            return None
        values[AT] = from_micros(time)
        if self.withdraws:
            values[WITHDRAWN] = withdrawn
        return self._make(**values)

    def withdrawal(self, left: Any, right: Any, time: int) -> Result | None:
        """Return what takes back the result of two rows: in a table its row is deleted."""
        made = self.make(left, right, time, withdrawn=True)
        if made is None:
            return None
        return Result("withdraw", made, time, () if self.withdraws else time_header(time))

    def _pair(self, key: dict[str, Any], left: Any, right: Any) -> dict[str, Any]:
        first, second = self._names
        key[first] = left
        key[second] = right
        return key


def _made_by(plan: OutputPlan) -> Callable[[dict[str, Any], Any, Any], dict[str, Any] | None]:
    """Return what puts two rows through the steps."""
    first, second = plan.names
    keys = [each.field.name for each in plan.key]
    pair = msgspec.defstruct("Pair", [*keys, first, second], gc=False)
    *early, last = plan.steps
    before = [compile_step(step) for step in early]
    values = [(name, compile_row(each)) for name, each in last.fields]
    holds = compile_step(last) if last.condition is not None else None
    names = [field.name for field in plan.schema.fields]

    def made(key: dict[str, Any], left: Any, right: Any) -> dict[str, Any] | None:
        row: Any = pair(*key.values(), left, right)
        for step in before:
            row = step(row)
            if row is None:
                return None
        if holds is None:
            return {name: value(row) for name, value in values}
        if holds(row) is None:
            return None
        return {name: getattr(row, name) for name in names}

    return made
