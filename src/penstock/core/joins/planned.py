"""A join with its expressions read: all that its machines need to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from penstock.core.derived.compiled import compile_steps
from penstock.core.derived.steps import SelectionStep
from penstock.core.joins.output import OutputPlan
from penstock.core.joins.sides import JoinKind, SideKind
from penstock.core.operators.operator import Input
from penstock.core.records.record import made_record
from penstock.core.records.schema import Schema

__all__ = ["PlanSide", "PlannedJoin", "Spans"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """The spans of a join in microseconds."""

    before: int
    after: int
    lateness: int
    wait: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSide:
    """One side: the input that it reads, and what is done to its records."""

    name: str
    kind: SideKind
    input: int
    steps: tuple[SelectionStep, ...]
    schema: Schema
    on: tuple[str, ...]
    carried: bool
    history: int | None

    def rows(self) -> Callable[[Any], Sequence[Any]] | None:
        """Return what makes rows of a record; None: it is one."""
        if self.carried:
            read = attrgetter("record")
            return lambda record: (read(record),)
        return compile_steps(self.steps, made_record(self.schema).cls) if self.steps else None

    def keeps(self, row: Any) -> bool:
        """Return whether a row of a table is there: it may be left out by a condition."""
        rows = self.rows()
        return rows is None or bool(rows(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJoin:
    """Plain values that can travel."""

    kind: JoinKind
    inputs: tuple[Input, ...]
    sides: tuple[PlanSide, PlanSide]
    how: str
    spans: Spans
    early: bool
    output: OutputPlan
    whole: bool = False
    """Whether it is over a range that is finished."""

    def class_of(self, number: int) -> type[Any]:
        """Return what the rows of a side are."""
        side = self.sides[number]
        found = self.inputs[side.input].record
        plain = not side.carried and side.schema == found.schema
        return found.cls if plain else made_record(side.schema).cls
