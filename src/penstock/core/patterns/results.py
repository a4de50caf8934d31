"""Matches as records: the type that holds them, made from the declaration, and how it is filled.

A result has the ``by`` fields, then those that were selected, or one for each step with its record
or records; ``timed_out`` where begun matches are given that ran out of time; ``withdrawn`` where
results are early and may be taken back; and ``at``, its event time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal

from penstock.core.expression import compile_step
from penstock.core.expression.tree import Field, Taken, walk
from penstock.core.instants import FIRST_MICROS, LAST_MICROS, instant
from penstock.core.operators.operator import Result, ResultKind, Shape
from penstock.core.patterns.matches.begun import Link, Match
from penstock.core.patterns.matches.conditions import Fold, fold
from penstock.core.patterns.planned import PlannedPattern, Taker
from penstock.core.records.annotations import HINTS, SCHEMA_ATTRIBUTE
from penstock.core.records.record import RecordType, record, record_of, record_type
from penstock.core.records.schema import Choice, FieldType, ListOf, MapOf, Nested, Scalar

__all__ = ["ResultMaker", "result_type"]


def result_type(name: str, plan: PlannedPattern, shape: Shape) -> RecordType[Any]:
    """Return the type of the records that hold the matches of a pattern."""
    annotations = dict(_annotations(plan))
    key = tuple(field.name for field in plan.by)
    title = "".join(
        word.capitalize() for word in name.replace("-", "_").replace(".", "_").split("_")
    )
    made = type(title, (), {"__annotations__": annotations, "__module__": __name__})
    time = "at" if shape == "stream" else None
    found: RecordType[Any] | None = record_type(record(key=key, time=time)(made))
    if found is None:
        raise TypeError(f"{name}: no record type")
    return found


def _annotations(plan: PlannedPattern) -> Iterator[tuple[str, Any]]:
    chosen = dict(plan.fields or ())
    for field in plan.by:
        if field.name not in chosen:
            yield field.name, _annotation(field.type)
    if plan.fields is None:
        for taker in _shown(plan):
            yield taker.name, _of_step(plan, taker)
    for name, expression in chosen.items():
        if expression.field_type is not None:
            chosen_kind = _annotation(expression.field_type)
            yield name, chosen_kind | None if expression.nullable else chosen_kind
    if plan.timeouts:
        yield "timed_out", bool
    if plan.early:
        yield "withdrawn", bool
    yield "at", datetime


def _shown(plan: PlannedPattern) -> list[Taker]:
    return [taker for taker in plan.takers if not taker.absent]


def _of_step(plan: PlannedPattern, taker: Taker) -> Any:
    kind: Any = _class(plan.inputs[plan.tests[taker.test][0]].record)
    if taker.several:
        return list[kind]
    return kind | None if taker.may_lack or (plan.timeouts and taker.number > 0) else kind


def _annotation(kind: FieldType) -> Any:
    match kind:
        case Scalar(name):
            return HINTS[name]
        case Choice(values):
            return Literal[values]
        case ListOf(item):
            return list[_annotation(item)]  # type: ignore[misc]
        case MapOf(value):
            inner = _annotation(value)
            return dict[str, inner]  # type: ignore[valid-type]
        case Nested(schema):
            return _class(record_of(schema))


def _class(found: RecordType[Any]) -> Any:
    """Return the class of a record type, so that another record can hold such records."""
    if SCHEMA_ATTRIBUTE not in vars(found.cls):
        setattr(found.cls, SCHEMA_ATTRIBUTE, found.schema)
    return found.cls


class ResultMaker:
    """Fills the records of one pattern, compiled once."""

    def __init__(self, plan: PlannedPattern, made: RecordType[Any]) -> None:
        self._plan = plan
        self._make = made.cls
        chosen = [name for name, _ in plan.fields or ()]
        names = [field.name for field in plan.by if field.name not in chosen]
        self._by = [(name, attrgetter(name)) for name in names]
        self._shown = _shown(plan)
        asked: list[Taken] = []
        self._plain: list[tuple[str, int, str]] = []
        """Fields of records: their names, the step, and what they are called there."""
        self._fields: list[tuple[str, Callable[[Any, Any], Any]]] = []
        numbers = {taker.name: taker.number for taker in plan.takers}
        for name, expression in plan.fields or ():
            root = expression.root
            if isinstance(root, Taken) and root.function == "last" and isinstance(root.of, Field):
                self._plain.append((name, numbers[root.step], root.of.name))
                continue
            for node in walk(root):
                if isinstance(node, Taken) and node not in asked:
                    asked.append(node)
            self._fields.append((name, compile_step(expression, asked)))
        self._fold: Fold = fold(asked, plan)

    def result(self, match: Match, change: ResultKind = "add") -> Result:
        """Return the record of a match; DataError: a field of it cannot be computed."""
        path, plan = match.path(), self._plan
        first = path[0].event.record
        values = {name: read(first) for name, read in self._by}
        if plan.fields is None:
            values |= self._records(path)
        else:
            last = {link.step: link.event.record for link in path}
            for name, step, field in self._plain:
                values[name] = getattr(last[step], field) if step in last else None
            if self._fields:
                taken = self._fold.of(path)
                for name, compute in self._fields:
                    values[name] = compute(None, taken)
        if plan.timeouts:
            values["timed_out"] = match.kind == "time-out"
        if plan.early:
            values["withdrawn"] = change != "add"
        values["at"] = instant(min(max(match.time, FIRST_MICROS), LAST_MICROS))
        return Result(change, self._make(**values), match.time)

    def _records(self, path: list[Link]) -> dict[str, Any]:
        by_step: dict[int, list[Any]] = {}
        for link in path:
            by_step.setdefault(link.step, []).append(link.event.record)
        values: dict[str, Any] = {}
        for taker in self._shown:
            found = by_step.get(taker.number, [])
            values[taker.name] = found if taker.several else (found[0] if found else None)
        return values
