"""From a change of a row to what its groups lose and gain.

Of each row its group and its values are kept, as they were when they were last added: exactly that
is subtracted when the row changes or is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from penstock.core.derived.compiled import compile_steps
from penstock.core.derived.selected import ReadSelection
from penstock.core.expression import compile_row
from penstock.core.expression.values.plainvalues import to_plain
from penstock.core.expression.values.times import from_micros
from penstock.core.keyed.tablerows import TableRows
from penstock.core.operators.operator import Arrival, Input, MachineOutput, Result, RowLookup, Shape
from penstock.core.operators.plans import StatefulPlan
from penstock.core.operators.steady import SteadyMachine
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.core.records.codec import key_encoder
from penstock.core.records.names import type_name
from penstock.core.records.record import RecordType, made_record
from penstock.core.records.schema import Field, Scalar, Schema
from penstock.core.rollup.reader import compile_measure
from penstock.core.rollup.resolve import Group, Measure

__all__ = ["ChangePlan", "group_key"]


def group_key(groups: tuple[Group, ...]) -> Any:
    """Return what gives the key on the log of a row of results, of an object with its groups."""
    fields = tuple(Field(name=each.name, type=each.type) for each in groups)
    key = tuple(each.name for each in groups)
    return key_encoder(Schema(name="Group", fields=fields, key=key))


@dataclass(frozen=True, slots=True)
class ChangePlan(StatefulPlan):
    """A table, the groups of its rows, and the values that are aggregated."""

    selection: ReadSelection
    groups: tuple[Group, ...]
    measures: tuple[Measure, ...]
    history: int | None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it reads."""
        return (self.selection.input,)

    def result(self, name: str, shape: Shape) -> RecordType[Any]:  # noqa: ARG002 - a stream
        """Return the type of its results."""
        packed = Scalar("bytes")
        fields = (
            Field(name="key", type=Scalar("text")),
            Field(name="group", type=packed),
            Field(name="loses", type=packed, nullable=True, optional=True),
            Field(name="gains", type=packed, nullable=True, optional=True),
            Field(name="at", type=Scalar("instant")),
        )
        return made_record(Schema(name=type_name(name), fields=fields, key=("key",), time="at"))

    def machine(
        self,
        store: Store,
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> ChangeMachine:
        """Return what does the work."""
        return ChangeMachine(self, store, record.cls)

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes."""
        by = [f"{each.name} = {each.expression.text} ({each.type})" for each in self.groups]
        values = [f"{each.expression or 'rows'} ({each.type})" for each in self.measures]
        return self.selection.words() | {"by": ", ".join(by), "values": ", ".join(values)}

    def holds(self) -> tuple[str, ...]:
        """Return what state it holds."""
        return (f"for each row of {self.selection.input.name}, its group and its values",)


class ChangeMachine(SteadyMachine):
    """Says what each group loses and gains."""

    def __init__(self, plan: ChangePlan, store: Store, make: type[Any]) -> None:
        steps = plan.selection.steps
        made = made_record(plan.selection.schema).cls
        self._read = compile_steps(steps, made) if steps else None
        self._groups = [
            (each.name, compile_row(each.expression), to_plain(each.type)) for each in plan.groups
        ]
        self._values = [compile_measure(each) for each in plan.measures]
        self._key = group_key(plan.groups)
        self._make = make
        self._rows = TableRows(store, bytes, tag=b"k", history=plan.history)
        super().__init__(store, (self._rows,))

    def handle(self, arrival: Arrival, given: MachineOutput) -> None:
        """Take in a change of a row."""
        key, time = arrival.key, arrival.time
        if not self._rows.accepts(key, time):
            given.dropped += 1
            return
        adds = None if arrival.record is None else self._adds(arrival.record, time)
        found = self._rows.row(key)
        had = None if found is None else decode(found)
        self._rows.put(key, None if adds is None else encode(adds), time)
        if had is not None and adds is not None and had[1] == adds[1]:
            self._give(adds, had[2], adds[2], time, given)
            return
        if had is not None:
            self._give(had, had[2], None, time, given)
        if adds is not None:
            self._give(adds, None, adds[2], time, given)

    def _adds(self, record: Any, time: int) -> list[Any] | None:
        """Return key, group and values of a row; None: it is in no group."""
        if self._read is not None:
            rows = self._read(record)
            if not rows:
                return None
            record = rows[0]
        groups = {name: value(record) for name, value, _ in self._groups}
        if None in groups.values():
            return None
        plain = [to(groups[name]) for name, _, to in self._groups]
        key = self._key(SimpleNamespace(**groups)).decode()
        return [key, encode(plain), encode([value(record, time) for value in self._values])]

    def _give(
        self,
        of: list[Any],
        loses: bytes | None,
        gains: bytes | None,
        time: int,
        given: MachineOutput,
    ) -> None:
        made = self._make(key=of[0], group=of[1], loses=loses, gains=gains, at=from_micros(time))
        given.results.append(Result("add", made, time))
