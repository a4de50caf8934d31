"""A life cycle made ready: conditions read, what results are like, which moves each state has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.derived.steps import TextReader
from penstock.core.expression import Expression
from penstock.core.hints import declare_first, label
from penstock.core.instants import MICROSECOND
from penstock.core.lifecycles.declared import DeclaredLifeCycle, Move
from penstock.core.lifecycles.machine import LifeMachine
from penstock.core.lifecycles.planned import PlannedLifeCycle, ReadMove
from penstock.core.lifecycles.soundness import soundness_problems
from penstock.core.operators.inputs import input_of
from penstock.core.operators.operator import Input, RowLookup, Shape
from penstock.core.operators.plans import StatefulPlan
from penstock.core.panes.store import Store
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.records.names import type_name
from penstock.core.records.record import RecordType, made_record
from penstock.core.records.schema import Field, Scalar, Schema
from penstock.core.units import duration_text
from penstock.errors import Problem

__all__ = ["LifeCyclePlan", "read_life_cycle"]

_BOOL, _TEXT, _INSTANT = Scalar("bool"), Scalar("text"), Scalar("instant")
_TAKEN = ("state", "before", "cause", "legal", "wanted", "at", "since")
"""Names that fields of a result have already."""


@dataclass(frozen=True, slots=True)
class LifeCyclePlan(PlannedLifeCycle, StatefulPlan):
    """A life cycle ready to run; plain values that can travel."""

    def result(self, name: str, shape: Shape) -> RecordType[Any]:
        """Return the type of its changes, or of the rows that say where each key is."""
        if shape == "table":
            since = Field(name="since", type=_INSTANT)
            fields, time = (*self.key, *map(_text, ("state", "before", "cause")), since), None
        else:
            fields, time = (*change_fields(self.key), *self.entry_fields), "at"
        key = tuple(field.name for field in self.key)
        return made_record(Schema(name=type_name(name), fields=fields, key=key, time=time))

    def machine(
        self,
        store: Store,
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> LifeMachine:
        """Return what does the work."""
        return LifeMachine(self, store=store, record=record)

    def declaration(self) -> Mapping[str, str]:
        """Return what the state of a key depends on: states, moves and time-outs may change."""
        key = ", ".join(f"{field.name}: {field.type}" for field in self.key)
        return {"key": key, "begins": self.states[0]}

    def holds(self) -> tuple[str, ...]:
        """Return what it remembers and for how long."""
        first = self.states[0]
        kept = f"for each key that has left {first!r}: its key, its state, and since when"
        if first in self.timeouts:
            kept = "for each key: its key, its state, and since when"
        spans = [
            f"{state!r} ends after {duration_text(span * MICROSECOND)}"
            for state, (span, _) in self.timeouts.items()
        ]
        lasting = [f"{state!r}" for state in self.states if state not in self.timeouts]
        return (kept, *spans, f"until a record ends it: {', '.join(lasting)}")


def change_fields(key: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields of a change that every life cycle has."""
    return (
        *key,
        _text("state"),
        _text("before"),
        _text("cause"),
        Field(name="legal", type=_BOOL),
        Field(name="wanted", type=_TEXT, nullable=True, optional=True),
        Field(name="at", type=_INSTANT),
    )


def read_life_cycle(life: DeclaredLifeCycle) -> LifeCyclePlan | list[Problem]:
    """Return a life cycle ready to run, or everything that is wrong with it."""
    problems = [*soundness_problems(life), *_inputs(life)]
    if problems:
        return problems
    data = life.reads
    key = tuple(_key_fields(data[0].record.schema))
    moves: list[list[ReadMove]] = [[] for _ in data]
    for move in life.moves:
        if move.stream is not None:
            reader = TextReader(data[move.stream].record.schema, move.place)
            condition = reader.expression(move.where, expect=_BOOL) if move.where else None
            moves[move.stream].append(ReadMove(move.sources, move.target, condition))
            problems += reader.problems
    entries, fields, wrong = _read_entries(life, key)
    problems += wrong
    if problems:
        return problems
    return LifeCyclePlan(
        inputs=tuple(_timed(input_of(each)) for each in data),
        states=life.states,
        key=key,
        moves=tuple(map(tuple, moves)),
        timeouts=dict(_timeouts(life.moves)),
        entries=entries,
        entry_fields=fields,
    )


def _timed(given: Input) -> Input:
    """Return an input with an event time: where records have none, that of the log is theirs."""
    return given if given.rule is not None else replace(given, rule=WatermarkRule())


def _timeouts(moves: tuple[Move, ...]) -> Iterator[tuple[str, tuple[int, str]]]:
    for move in moves:
        if move.after is not None and move.target is not None:
            for state in move.sources:
                yield state, (move.after // MICROSECOND, move.target)


def _inputs(life: DeclaredLifeCycle) -> Iterator[Problem]:
    """Find what cannot be read, or is not kept apart by the same keys."""
    if not life.reads:
        text = "no record moves it"
        yield Problem("lifecycle.reads", text, 'add .on(readings, "new -> done")', life.place)
        return
    first: Any = None
    for data in life.reads:
        if getattr(data, "kind", None) != "stream":
            text = f"{label(data)} is not a stream"
            hint = declare_first(data) or "pass what app.stream(...) returned"
            yield Problem("lifecycle.not-a-stream", text, hint, life.place)
            continue
        schema = data.record.schema
        first = first or data
        types = [str(field.type) for field in _key_fields(schema)]
        expected = [str(field.type) for field in _key_fields(first.record.schema)]
        if not types:
            text = f"stream {data.name!r} has no key, and a life cycle is of a key"
            hint = f'@record(key="...") above class {schema.name}'
            yield Problem("lifecycle.no-key", text, hint, life.place)
        elif types != expected:
            text = f"the keys of {first.name!r} and {data.name!r} are of different types"
            hint = f"{', '.join(expected)} and {', '.join(types)} are never the same key"
            yield Problem("lifecycle.keys", text, hint, life.place)
        for name in schema.key if data is first else ():
            if name in _TAKEN:
                text = f"the key field {name!r} has the name of a field of the results"
                yield Problem("lifecycle.field", text, "give it another name", life.place)


def _read_entries(
    life: DeclaredLifeCycle, key: tuple[Field, ...]
) -> tuple[dict[str, tuple[tuple[str, Expression], ...]], tuple[Field, ...], list[Problem]]:
    """Return what is recorded when states begin, and the fields that take it."""
    schema = Schema(name="Change", fields=change_fields(key))
    found: dict[str, tuple[tuple[str, Expression], ...]] = {}
    fields: dict[str, Field] = {}
    problems: list[Problem] = []
    for entry in life.entries:
        reader = TextReader(schema, entry.place)
        for name, text in entry.fields:
            if not reader.named("lifecycle.field", name):
                continue
            expression = reader.expression(text)
            kind = None if expression is None else expression.field_type
            if schema.field(name) is not None or name in _TAKEN:
                reader.wrong("lifecycle.field", f"a change has a field {name!r} already")
            elif expression is not None and kind is None:
                reader.wrong("lifecycle.field", f"{name}: {text!r} is always null")
            elif name in fields and kind is not None and fields[name].type != kind:
                reader.wrong("lifecycle.field", f"{name!r} is {fields[name].type} and {kind}")
            elif expression is not None and kind is not None:
                fields[name] = Field(name=name, type=kind, nullable=True, optional=True)
                found[entry.state] = (*found.get(entry.state, ()), (name, expression))
        problems += reader.problems
    return found, tuple(fields.values()), problems


def _key_fields(schema: Schema) -> Iterator[Field]:
    for name in schema.key:
        if (field := schema.field(name)) is not None:
            yield field


def _text(name: str) -> Field:
    return Field(name=name, type=_TEXT)
