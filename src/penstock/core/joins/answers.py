"""Two tables, of which the left one points at rows of the right one by a field of its own.

It takes three steps, because the tables have different keys. **Subscriptions**: a left row says, to
the partition of the right row that it points at, that it does, and when it points elsewhere.
**Answers**: beside the right rows stand the keys of the left rows that point at them; each is sent
the right row, and every change of it. **The join**: beside each left row stands the last answer.
An answer about a row that the left row no longer points at is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.core.derived.compiled import compile_steps
from penstock.core.derived.selected import Selected
from penstock.core.derived.steps import SelectionStep, step_words
from penstock.core.expression.values.times import from_micros
from penstock.core.instants import micros
from penstock.core.joins.rekey import key_text, keyless
from penstock.core.joins.sides import Side
from penstock.core.keyed.bag import Bag
from penstock.core.keyed.tablerows import TableRows
from penstock.core.operators.inputs import input_of
from penstock.core.operators.operator import (
    Arrival,
    Inner,
    Input,
    MachineOutput,
    Result,
    RowLookup,
    Shape,
)
from penstock.core.operators.plans import StatefulPlan
from penstock.core.operators.steady import SteadyMachine
from penstock.core.panes.store import Store
from penstock.core.records.names import type_name
from penstock.core.records.record import RecordType, made_record
from penstock.core.records.schema import Field, Nested, Scalar, Schema
from penstock.errors import Place, Problem

__all__ = ["Answers", "Subscriptions"]

_TEXT, _AT = Scalar("text"), Field(name="at", type=Scalar("instant"))
_OFFSET = Field(name="offset", type=Scalar("int"))
"""Of the left row that asks; -1: it did not ask, the right row changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriptions:
    """Which left rows point at which right rows, each change to the partition of the right row."""

    left: Selected
    on: tuple[str, ...]
    history: int | None
    schema: Schema
    steps: tuple[SelectionStep, ...]
    place: Place | None = None

    kind = "subscriptions of a join"

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return (self.left.data,)

    def reading(self, data: Sequence[Any]) -> Subscriptions:
        """Return the same of another table."""
        return replace(self, left=self.left.reading(data[0]))

    def plan(self) -> SubscriptionPlan | list[Problem]:
        """Return it ready to run."""
        read = input_of(self.left.data)
        return SubscriptionPlan(read, self.on, self.history, self.schema, self.steps)


@dataclass(frozen=True, slots=True)
class SubscriptionPlan(StatefulPlan):
    """The left table, and the fields that point at a right row."""

    input: Input
    on: tuple[str, ...]
    history: int | None
    schema: Schema
    steps: tuple[SelectionStep, ...]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it reads."""
        return (self.input,)

    def result(self, name: str, shape: Shape) -> RecordType[Any]:  # noqa: ARG002 - a stream
        """Return the type of its results."""
        fields = (
            Field(name="key", type=_TEXT),
            Field(name="row", type=_TEXT),
            Field(name="points", type=Scalar("bool")),
            _OFFSET,
            _AT,
        )
        return made_record(Schema(name=type_name(name), fields=fields, key=("key",), time="at"))

    def machine(
        self,
        store: Store,
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> SubscriptionMachine:
        """Return what does the work."""
        return SubscriptionMachine(self, store, record.cls)

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes."""
        return {
            "stream": self.input.topic,
            "selection": step_words(self.steps),
            "on": ", ".join(self.on),
        }

    def holds(self) -> tuple[str, ...]:
        """Return what state it holds."""
        return (f"for each row of {self.input.name}, where it points",)


class SubscriptionMachine(SteadyMachine):
    """Says where rows point, when that changes."""

    def __init__(self, plan: SubscriptionPlan, store: Store, make: type[Any]) -> None:
        self._key = key_text(plan.schema, plan.on)
        self._none = keyless(plan.schema, plan.on)
        self._keeps = compile_steps(plan.steps) if plan.steps else None
        self._make = make
        self._rows = TableRows(store, str, tag=b"k", history=plan.history)
        super().__init__(store, (self._rows,))

    def handle(self, arrival: Arrival, given: MachineOutput) -> None:
        """Take in a change of a row."""
        key, record, time = arrival.key, arrival.record, arrival.time
        if not self._rows.accepts(key, time):
            given.dropped += 1
            return
        if record is not None and self._keeps is not None and not self._keeps(record):
            record = None
        points = None
        if record is not None and (self._none is None or not self._none(record)):
            points = self._key(record).decode()
        before = self._rows.row(key)
        self._rows.put(key, points, time)
        if before == points:
            return
        row = key.decode()
        for at, now in ((before, False), (points, True)):
            if at is not None:
                made = self._make(
                    key=at, row=row, points=now, offset=arrival.offset, at=from_micros(time)
                )
                given.results.append(Result("add", made, time))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The right rows, each to all left rows that point at it."""

    subscriptions: Any
    right: Selected
    history: int | None
    schema: Schema
    steps: tuple[SelectionStep, ...]
    place: Place | None = None

    kind = "answers of a join"

    @classmethod
    def of(cls, left: Side, right: Side) -> Answers:
        """Return what answers the rows of the left side."""
        subscriptions = Subscriptions(
            left=left.selected,
            on=left.on,
            history=left.history,
            schema=left.schema,
            steps=left.selection.steps,
        )
        return cls(
            subscriptions=Inner("subscriptions", subscriptions),
            right=right.selected,
            history=right.history,
            schema=right.schema,
            steps=right.selection.steps,
        )

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return (self.subscriptions, self.right.data)

    def reading(self, data: Sequence[Any]) -> Answers:
        """Return the same of other data."""
        return replace(self, subscriptions=data[0], right=self.right.reading(data[1]))

    def plan(self) -> AnswerPlan | list[Problem]:
        """Return it ready to run."""
        given = self.subscriptions
        if isinstance(given, Inner):  # only to see what the plan is
            given = given.operator.reads[0]
        inputs = (replace(input_of(given), kind="stream", rule=None), input_of(self.right.data))
        return AnswerPlan(inputs, self.history, self.schema, self.steps)


@dataclass(frozen=True, slots=True)
class AnswerPlan(StatefulPlan):
    """Subscriptions and the right table."""

    inputs: tuple[Input, ...]
    history: int | None
    schema: Schema
    steps: tuple[SelectionStep, ...]

    def result(self, name: str, shape: Shape) -> RecordType[Any]:  # noqa: ARG002 - a stream
        """Return the type of its results."""
        fields = (
            Field(name="key", type=_TEXT),
            Field(name="of", type=_TEXT),
            Field(name="row", type=Nested(self.schema), nullable=True, optional=True),
            _OFFSET,
            _AT,
        )
        return made_record(Schema(name=type_name(name), fields=fields, key=("key",), time="at"))

    def machine(
        self,
        store: Store,
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> AnswerMachine:
        """Return what does the work."""
        return AnswerMachine(self, store, record.cls)

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes."""
        topics = ", ".join(each.topic for each in self.inputs)
        return {"streams": topics, "selection": step_words(self.steps)}

    def holds(self) -> tuple[str, ...]:
        """Return what state it holds."""
        return (
            f"the rows of {self.inputs[1].name}",
            "for each of them, the keys of the rows that point at it",
        )


class AnswerMachine(SteadyMachine):
    """Keeps right rows, and answers whoever points at them."""

    def __init__(self, plan: AnswerPlan, store: Store, make: type[Any]) -> None:
        self._keeps = compile_steps(plan.steps) if plan.steps else None
        self._make = make
        self._rows = TableRows(store, plan.inputs[1].record.cls, tag=b"k", history=plan.history)
        self._bags = Bag(store, tag=b"s")
        super().__init__(store, (self._rows, self._bags))

    def handle(self, arrival: Arrival, given: MachineOutput) -> None:
        """Take in who points where, or a change of a row."""
        if arrival.input == 0:
            self._subscribe(arrival, given)
            return
        key, row, time = arrival.key, arrival.record, arrival.time
        if not self._rows.accepts(key, time):
            given.dropped += 1
            return
        if row is not None and self._keeps is not None and not self._keeps(row):
            row = None
        before = self._rows.row(key)
        self._rows.put(key, row, time)
        if row is None and before is None:
            return
        for each in self._bags.values(key):
            self._answer(each, key, row, (time, -1), given)

    def _subscribe(self, arrival: Arrival, given: MachineOutput) -> None:
        asks = arrival.record
        if not asks.points:
            self._bags.remove(arrival.key, asks.row)
            return
        if not self._bags.holds(arrival.key, asks.row):
            self._bags.add(arrival.key, asks.row)
        found = self._rows.latest(arrival.key)
        if found is None or found[1] is None:
            at = (micros(asks.at), asks.offset)
            self._answer(asks.row, arrival.key, None, at, given)
        else:
            at = (found[0], asks.offset)
            self._answer(asks.row, arrival.key, found[1], at, given)

    def _answer(
        self, to: str, of: bytes, row: Any | None, at: tuple[int, int], given: MachineOutput
    ) -> None:
        time, offset = at
        made = self._make(key=to, of=of.decode(), row=row, offset=offset, at=from_micros(time))
        given.results.append(Result("add", made, time))
