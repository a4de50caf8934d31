"""What each group holds, and its row of results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.core.expression.values.plainvalues import from_plain
from penstock.core.expression.values.times import from_micros
from penstock.core.joins.spans import span_words
from penstock.core.operators.marks import time_header
from penstock.core.operators.operator import Arrival, Input, MachineOutput, Result, RowLookup, Shape
from penstock.core.operators.plans import StatefulPlan
from penstock.core.operators.steady import Kept, SteadyMachine
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING, END
from penstock.core.records.names import type_name
from penstock.core.records.record import RecordType, made_record
from penstock.core.records.schema import Field, Scalar, Schema
from penstock.core.rollup.declaration import combiner_words
from penstock.core.rollup.resolve import Group, Measure
from penstock.core.tables.columns import column_of
from penstock.core.tables.holding import Holding

__all__ = ["TotalPlan"]


@dataclass(frozen=True, slots=True)
class TotalPlan(StatefulPlan):
    """Changes of groups, and what is computed of each group."""

    input: Input
    groups: tuple[Group, ...]
    measures: tuple[Measure, ...]
    keeps_empty: bool
    held_for: int | None = None
    """How long in event time a changed result is held back, in microseconds."""
    most_held: int | None = None
    """How many results are held back at most."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it reads."""
        return (self.input,)

    def result(self, name: str, shape: Shape) -> RecordType[Any]:  # noqa: ARG002 - for both alike
        """Return the type of its results."""
        fields = (
            *(Field(name=each.name, type=each.type) for each in self.groups),
            *(each.gives for each in self.measures),
            Field(name="at", type=Scalar("instant")),
        )
        key = tuple(each.name for each in self.groups)
        return made_record(Schema(name=type_name(name), fields=fields, key=key, time="at"))

    def machine(
        self,
        store: Store,
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> TotalMachine:
        """Return what does the work."""
        return TotalMachine(self, store, record.cls)

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes."""
        held = {}
        if self.held_for is not None or self.most_held is not None:
            span = "" if self.held_for is None else span_words(self.held_for)
            most = "" if self.most_held is None else f"{self.most_held} groups at most"
            held["held"] = ", ".join(each for each in (span, most) if each)
        return held | {
            "by": ", ".join(f"{each.name} ({each.type})" for each in self.groups),
            "aggregates": ", ".join(
                f"{each.name} = {combiner_words(each.combiner)} of {each.expression or 'rows'}"
                for each in self.measures
            ),
            "empty groups": "kept" if self.keeps_empty else "deleted",
        }

    def holds(self) -> tuple[str, ...]:
        """Return what state it holds."""
        kept = [each.name for each in self.measures if column_of(each, None).keeps_values]
        words = "its results so far"
        if self.most_held is not None:
            words += f" (of which {self.most_held} at most are held back)"
        if kept:
            words += f", and all values that {', '.join(kept)} are of"
        which = "each group there ever was" if self.keeps_empty else "each group that has rows"
        return (f"for {which}, {words}",)


class _States:
    """By group: its time, its groups, how many rows it has, and what each column holds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[bytes, list[Any] | None] = {}
        """None: nothing any more."""
        self._dirty: set[bytes] = set()

    def of(self, key: bytes) -> list[Any] | None:
        """Return what is held for a group."""
        if key not in self._held:
            found = self._store.get(b"k" + key)
            self._held[key] = None if found is None else decode(found)
            if found is None:
                self._dirty.add(key)  # if nothing comes into it, it is forgotten then
        return self._held[key]

    def put(self, key: bytes, held: list[Any] | None) -> None:
        """Hold something, or nothing any more."""
        self._dirty.add(key)
        self._held[key] = held

    def flush(self) -> None:
        """Write what changed."""
        for key in self._dirty:
            if (held := self._held[key]) is None:
                self._store.delete(b"k" + key)
                del self._held[key]
            else:
                self._store.put(b"k" + key, encode(held))
        self._dirty.clear()

    def trim(self, most: int) -> None:
        """Forget what is in the store, where more than so many groups are in memory."""
        if len(self._held) > most:
            self._held = {key: self._held[key] for key in self._dirty}

    def sweep(self, mark: int) -> None:
        """Do nothing: a group is there until its last row is gone."""

    def slots(self) -> None:
        """Return nothing: all of it is with the groups."""

    def begin(self, slots: None, mark: int) -> None:
        """Go on from where another one was."""


class TotalMachine(SteadyMachine):
    """Adds up what groups gain, subtracts what they lose, and gives their rows."""

    def __init__(self, plan: TotalPlan, store: Store, make: type[Any]) -> None:
        self._states = _States(store)
        self._groups = [(each.name, from_plain(each.type)) for each in plan.groups]
        self._columns = [
            column_of(measure, (store, b"v%d." % number))
            for number, measure in enumerate(plan.measures)
        ]
        self._names = [(each.name, from_plain(each.gives.type)) for each in plan.measures]
        self._keeps_empty = plan.keeps_empty
        self._make = make
        self._holding = None
        if plan.held_for is not None or plan.most_held is not None:
            self._holding = Holding(store, held_for=plan.held_for, most=plan.most_held)
        kept: list[Kept] = [self._states, *(c.bag for c in self._columns if c.bag)]
        super().__init__(store, kept if self._holding is None else [*kept, self._holding])

    def handle(self, arrival: Arrival, given: MachineOutput) -> None:
        """Take in what a group loses and gains."""
        change, key = arrival.record, arrival.key
        held = self._states.of(key)
        if held is None:
            if change.gains is None:
                return  # a group that is gone loses nothing
            held = [BEGINNING, change.group, 0, [each.zero() for each in self._columns]]
        elif held[2] == 0 and change.gains is None:
            return  # nor does one that is empty
        columns = held[3]
        for sign, packed in ((-1, change.loses), (1, change.gains)):
            if packed is None:
                continue
            held[2] += sign
            for number, (column, value) in enumerate(
                zip(self._columns, decode(packed), strict=True)
            ):
                step = column.add if sign > 0 else column.subtract
                columns[number] = step(key, columns[number], value)
        held[0] = max(held[0], arrival.time)
        self._states.put(key, held)
        if self._holding is None:
            self._give(key, given)
            return
        self._holding.hold(key, arrival.time)
        for each in self._holding.released(self._newest):
            self._give(each, given)

    def advance(
        self, *, clock: int, event_time: int | None = None, limit: int | None = None
    ) -> MachineOutput:
        """Let event time move to what was told, and give what was held back until then."""
        given = super().advance(clock=clock, event_time=event_time, limit=limit)
        if event_time is not None and self._holding is not None:
            self._newest = max(self._newest, event_time)
            for each in self._holding.released(self._newest):
                self._give(each, given)
        return given

    def finish(self) -> MachineOutput:
        """Give what is held back: the input is at its end."""
        given = super().finish()
        for each in () if self._holding is None else self._holding.released(END):
            self._give(each, given)
        return given

    def _give(self, key: bytes, given: MachineOutput) -> None:
        """Give the row of a group, or its deletion."""
        held = self._states.of(key)
        if held is None:
            return
        if held[2] == 0 and not self._keeps_empty:
            self._states.put(key, None)
            given.results.append(Result("delete", None, held[0], time_header(held[0]), key))
            return
        given.results.append(Result("add", self._row(key, held), held[0]))

    def _row(self, key: bytes, held: list[Any]) -> Any:
        time, groups, _, columns = held
        values = {
            name: back(value)
            for (name, back), value in zip(self._groups, decode(groups), strict=True)
        }
        for (name, back), column, value in zip(self._names, self._columns, columns, strict=True):
            values[name] = back(column.result(key, value))
        return self._make(**values, at=from_micros(time))
