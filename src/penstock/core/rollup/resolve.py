"""A windowed aggregation whose expressions are read and whose types are settled.

What :mod:`penstock.core.rollup.aggregation` declares, this module makes ready for every engine: the
condition, the groups and the values as typed expressions, and the combiner for the pane machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from penstock.core.aggregates.aggregate import Aggregate, Form, Takes, form_of
from penstock.core.derived.steps import SelectionStep, TextReader
from penstock.core.expression import Expression
from penstock.core.expression.types import Type, is_comparable, is_numeric
from penstock.core.panes.combiner import Combiner
from penstock.core.panes.machine import PaneMachine, Windowing
from penstock.core.panes.several import Several
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.records.annotations import read_field
from penstock.core.records.record import is_key_type
from penstock.core.records.schema import Field, FieldType, Scalar, Schema
from penstock.core.rollup.aggregation import Aggregation
from penstock.core.rollup.shape import shape_problems
from penstock.errors import Problem

__all__ = ["Group", "Measure", "MeasureReader", "Rollup", "read_rollup"]

_INT, _FLOAT = Scalar("int"), Scalar("float")
_TAKES: dict[Takes, tuple[str, Callable[[Type], bool]]] = {
    "comparable": ("numbers, texts, bools, dates or instants", is_comparable),
    "numbers": ("numbers", is_numeric),
    "floats": ("numbers", is_numeric),
    "presence": ("any values", lambda _type: True),
}
"""What an aggregate takes, in words, and whether a type is that."""


@dataclass(frozen=True, slots=True)
class Group:
    """One field that windows are kept apart by."""

    name: str
    expression: Expression
    type: FieldType


@dataclass(frozen=True, slots=True)
class Measure:
    """One result of a window."""

    name: str
    combiner: Combiner[Any, Any, Any]
    expression: Expression | None
    """None: every record counts."""
    type: FieldType
    """Of the values that go in."""
    gives: Field
    """The field that takes the result."""

    @property
    def form(self) -> Form:
        """What engines need to know of the combiner."""
        return form_of(self.combiner)


@dataclass(frozen=True, slots=True)
class Rollup:
    """Everything an engine needs to know of one aggregation; plain values that can travel."""

    topic: str
    """The topic it reads."""
    schema: Schema
    """The records on it."""
    steps: tuple[SelectionStep, ...]
    groups: tuple[Group, ...]
    measures: tuple[Measure, ...]
    windowing: Windowing
    rule: WatermarkRule | None
    """None: windows in processing time."""

    def machine(self) -> PaneMachine:
        """Return the pane machine that computes it."""
        return PaneMachine(self.windowing, self.combiner())

    def combiner(self) -> Several:
        """Return all its aggregates as one."""
        return Several([measure.combiner for measure in self.measures])

    def finished(self) -> Rollup:
        """Return the same over a range that is finished: every window speaks once, at its end."""
        plain = Windowing(windows=self.windowing.windows, stamp=self.windowing.stamp)
        return replace(self, windowing=plain)


def read_rollup(aggregation: Aggregation) -> Rollup | list[Problem]:
    """Return the aggregation ready to run, or everything that is wrong with its expressions."""
    if misshapen := shape_problems(aggregation):
        return misshapen
    reader = MeasureReader(aggregation.stream.record.schema, aggregation.place)
    windowed = aggregation.windowed
    steps = tuple(reader.step(step) for step in windowed.selection.steps)
    groups = tuple(reader.group(name, text) for name, text in windowed.by)
    measures = tuple(reader.measure(name, each) for name, each in aggregation.aggregates)
    if reader.problems:
        return reader.problems
    return Rollup(
        topic=aggregation.stream.topic.name,
        schema=aggregation.stream.record.schema,
        steps=tuple(step for step in steps if step),
        groups=tuple(group for group in groups if group),
        measures=tuple(measure for measure in measures if measure),
        windowing=windowed.windowing,
        rule=WatermarkRule.of(aggregation.stream.event_time) if windowed.time == "event" else None,
    )


class MeasureReader(TextReader):
    """Reads groups and aggregates too."""

    def group(self, name: str, text: str, *, nullable: bool = False) -> Group | None:
        """Read what windows are kept apart by, or rows; ``nullable``: some may be in no group."""
        named = self.named("window.by", name)
        expression = self.expression(text)
        if expression is None or not named:
            return None
        kind = expression.field_type
        if kind is None or not is_key_type(kind):
            hint = "group by a text, an int, a bool, a date or an instant"
            self.wrong("window.by", f"by {name!r}, which is {expression.type}", hint)
            return None
        if expression.nullable and not nullable:
            hint = f"coalesce({text}, ...) says which group such records are in"
            self.wrong("window.by", f"by {name!r}, which may be null", hint)
            return None
        return Group(name, expression, kind)

    def measure(self, name: str, aggregate: Aggregate) -> Measure | None:
        """Read one aggregate, and settle the type of its result."""
        if not self.named("aggregate.name", name):
            return None
        combiner, form = aggregate.combiner, form_of(aggregate.combiner)
        if aggregate.of is None:
            return Measure(name, combiner, None, _INT, Field(name=name, type=_INT))
        expression = self.expression(
            aggregate.of, expect=_FLOAT if form.takes == "floats" else None
        )
        if expression is None:
            return None
        kind = _INT if form.takes == "presence" else expression.field_type
        words, fits = _TAKES[form.takes]
        if kind is None or not fits(expression.type):
            text = f"{name}: {aggregate.of!r} gives {expression.type}"
            self.wrong("aggregate.type", text, f"it takes {words}")
            return None
        gives = self._result(name, aggregate, kind)
        return Measure(name, combiner, expression, kind, gives) if gives else None

    def _result(self, name: str, aggregate: Aggregate, kind: FieldType) -> Field | None:
        form = form_of(aggregate.combiner)
        if form.gives is not None:
            given, nullable = form.gives(kind), form.nullable
            return Field(name=name, type=given, nullable=nullable, optional=nullable)
        try:
            return read_field(name, aggregate.gives, msgspec.NODEFAULT)[0]
        except TypeError as error:
            self.wrong("aggregate.gives", f"{name}: {error}", "gives=float, for example")
            return None
