"""Operators that handle records one by one, and remember nothing: their plan and their machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.derived.compiled import compile_steps
from penstock.core.derived.selected import ReadSelection, record_of_results
from penstock.core.operators.marks import time_header
from penstock.core.operators.operator import (
    Arrival,
    Input,
    MachineOutput,
    Refused,
    Result,
    RowLookup,
    Shape,
)
from penstock.core.operators.plans import StatelessPlan
from penstock.core.operators.stateless import StatelessMachine
from penstock.core.panes.store import Store
from penstock.core.records.record import RecordType
from penstock.errors import DataError

__all__ = ["SelectingMachine", "SelectingPlan"]


@dataclass(frozen=True, slots=True)
class SelectingPlan(StatelessPlan):
    """Records of one stream or several, each through the steps of its own."""

    selections: tuple[ReadSelection, ...]
    key: tuple[str, ...] | None = None
    """The fields of another key; None: that of the records."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it reads."""
        return tuple(each.input for each in self.selections)

    def result(self, name: str, shape: Shape) -> RecordType[Any]:  # noqa: ARG002 - for both alike
        """Return the type of its results."""
        return record_of_results(name, self.selections, self.key)

    def machine(
        self,
        store: Store,  # noqa: ARG002 - it remembers nothing
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - and looks nothing up
    ) -> SelectingMachine:
        """Return what does the work."""
        return SelectingMachine(self, record)

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes, aspect by aspect."""
        words = [each.words() for each in self.selections]
        found = {aspect: " | ".join(each[aspect] for each in words) for aspect in words[0]}
        return found | ({} if self.key is None else {"key": ", ".join(self.key)})

    def holds(self) -> tuple[str, ...]:
        """Return nothing: no state is held."""
        return ()


class SelectingMachine(StatelessMachine):
    """Makes of each record what its steps leave of it.

    Of a table the row of a key is deleted from the result where it is deleted, or left out.
    """

    def __init__(self, plan: SelectingPlan, record: RecordType[Any]) -> None:
        made = record.cls
        copies = plan.key is not None or (
            len(plan.selections) > 1
            and any(each.input.record.cls is not made for each in plan.selections)
        )
        self._rows = [_rows_of(each, made, copies=copies) for each in plan.selections]
        self._tables = [each.input.kind == "table" for each in plan.selections]

    def take(
        self,
        arrivals: Sequence[Arrival],
        *,
        clock: int,  # noqa: ARG002 - time means nothing to it
        limit: int | None = None,  # noqa: ARG002 - nothing is due later
    ) -> MachineOutput:
        """Give what the steps make of each record."""
        given = MachineOutput()
        results, rows_of, tables = given.results, self._rows, self._tables
        for arrival in arrivals:
            number, record = arrival.input, arrival.record
            if record is None:
                if tables[number]:
                    results.append(_deletion(arrival))
                continue
            try:
                rows = rows_of[number](record)
            except DataError as error:
                given.refused.append(Refused(arrival, error))
                continue
            for row in rows:
                results.append(Result("add", row, arrival.time))
            if not rows:
                given.dropped += 1
                if tables[number]:
                    results.append(_deletion(arrival))
        return given


def _deletion(arrival: Arrival) -> Result:
    """Return the deletion of a row of results, at the event time of what came."""
    return Result("delete", None, arrival.time, time_header(arrival.time), arrival.key)


def _rows_of(
    selection: ReadSelection, made: type[Any], *, copies: bool
) -> Callable[[Any], Sequence[Any]]:
    if selection.makes_records or not copies or selection.input.record.cls is made:
        return compile_steps(selection.steps, made)
    names = [field.name for field in selection.schema.fields]
    rows = compile_steps(selection.steps)
    return lambda record: [
        made(**{name: getattr(row, name) for name in names}) for row in rows(record)
    ]
