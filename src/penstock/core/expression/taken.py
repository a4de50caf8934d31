"""What an expression may say of the records that the steps of a pattern have taken so far.

``sum(start.price)``, ``count(start)``, ``first``, ``last``, ``min``, ``max`` and ``avg`` are about
all records of a step; ``start.price`` is about the record of a step that takes one. The sum and the
count of nothing are 0, everything else of nothing is null. Nulls are left out, except by last.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from penstock.core.expression.coercion import RuleError, apply, cast, widen
from penstock.core.expression.parsing import syntax
from penstock.core.expression.tree import Field, Node, Taken, TakenFunction
from penstock.core.expression.types import (
    BIGINT,
    DOUBLE,
    INT,
    Decimal,
    is_comparable,
    is_numeric,
)
from penstock.core.records.schema import Schema

__all__ = ["TAKEN_FUNCTIONS", "StepRecords", "about_step", "one_taken", "several_taken"]

TAKEN_FUNCTIONS = frozenset((*get_args(TakenFunction), "avg"))


@dataclass(frozen=True, slots=True)
class StepRecords:
    """The records that a step may take."""

    schema: Schema
    several: bool = False
    may_lack: bool = True
    """Whether there may be none where the expression is asked."""


def about_step(
    found: syntax.Syntax, steps: Mapping[str, StepRecords]
) -> tuple[str, syntax.Syntax | None] | None:
    """Return the step and what is asked of its records (None: themselves); None: of no step."""
    match found:
        case syntax.Name(name=name) if name in steps:
            return name, None
        case syntax.Member(of=of, name=name, start=start, end=end):
            if (inner := about_step(of, steps)) is None:
                return None
            step, rest = inner
            spot = {"start": start, "end": end}
            if rest is None:
                return step, syntax.Name(name=name, **spot)
            return step, syntax.Member(of=rest, name=name, **spot)
    return None


def one_taken(step: str, records: StepRecords, of: Node) -> Node:
    """Return the value of the one record that a step takes."""
    if records.several:
        field = f"{step}.{of.name}" if isinstance(of, Field) else f"{step}..."
        hint = f"say which: first({field}), last({field}), sum({field})"
        raise RuleError(f"the step {step!r} may take several records", hint)
    return Taken("last", step, of, of.type, records.may_lack or of.nullable)


def several_taken(name: str, step: str, records: StepRecords, of: Node | None) -> Node:
    """Return what a function makes of the records of a step."""
    if of is None:
        if name != "count":
            raise RuleError(f"{name} takes a field of a step", f"{name}({step}.field), for example")
        return Taken("count", step, None, BIGINT, nullable=False)
    may_lack = records.may_lack or of.nullable
    match name:
        case "count":
            return Taken("count", step, of, BIGINT, nullable=False)
        case "first" | "last":
            return Taken(name, step, of, of.type, may_lack)
        case "min" | "max":
            if not is_comparable(of.type):
                raise RuleError(f"{name} takes values that have an order, not {of.type}")
            return Taken(name, step, of, of.type, may_lack)
    if not is_numeric(of.type):
        raise RuleError(f"{name} takes numbers, not {of.type}")
    if name == "avg":
        return _average(step, of)
    return _sum(step, of)


def _sum(step: str, of: Node) -> Node:
    type_ = BIGINT if of.type == INT else of.type
    return Taken("sum", step, of, type_, nullable=False)


def _average(step: str, of: Node) -> Node:
    number = cast(of, DOUBLE) if isinstance(of.type, Decimal) else widen(of, DOUBLE)
    total = Taken("sum", step, number, DOUBLE, nullable=False)
    counted = widen(Taken("count", step, of, BIGINT, nullable=False), DOUBLE)
    return apply("divide.double", (total, counted), DOUBLE)
