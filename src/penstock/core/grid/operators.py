"""The two operators of live queries: cells that compare, and results that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.grid.documents import document_reader
from penstock.core.grid.following import ResultMachine
from penstock.core.grid.matching import CellMachine
from penstock.core.grid.messages import MATCHED, NEWS
from penstock.core.operators.inputs import input_of
from penstock.core.operators.operator import Input, RowLookup, Shape
from penstock.core.panes.store import Store
from penstock.core.records.record import RecordType
from penstock.errors import Place

__all__ = ["Cells", "Results"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """One row of the grid: it compares the writes of a table with its queries."""

    table: Any
    placed: Any
    """The stream that says which queries it has."""
    document: str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: str = field(default="live queries", init=False)

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return (self.table, self.placed)

    def reading(self, data: Sequence[Any]) -> Cells:
        """Return the same of another table."""
        return replace(self, table=data[0], placed=data[1])

    def plan(self) -> CellPlan:
        """Return it ready to run."""
        inputs = (input_of(self.table), input_of(self.placed))
        return CellPlan(inputs, self.document)


@dataclass(frozen=True, slots=True)
class CellPlan:
    """What a cell reads, and how it makes documents of rows."""

    inputs: tuple[Input, ...]
    document: str | None

    @property
    def stateful(self) -> bool:
        """Return True: it remembers rows and queries."""
        return True

    def result(self, name: str, shape: Shape) -> RecordType[Any]:  # noqa: ARG002
        """Return the type of its results."""
        return MATCHED

    def machine(
        self,
        store: Store,
        record: RecordType[Any],  # noqa: ARG002 - there is one type
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> CellMachine:
        """Return what does the work."""
        return CellMachine(store, document_reader(self.inputs[0].record, self.document))

    def finished(self) -> CellPlan:
        """Return the same."""
        return self

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes."""
        return {"of": self.inputs[0].name, "document": self.document or ""}

    def holds(self) -> tuple[str, ...]:
        """Return what state it holds."""
        return (f"the rows of {self.inputs[0].name}", "its queries, while somebody renews them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Keeps the results of all queries, and tells what is new in them."""

    matched: tuple[Any, ...]
    """What each row of the grid tells."""
    columns: int
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: str = field(default="live results", init=False)

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return self.matched

    def reading(self, data: Sequence[Any]) -> Results:
        """Return the same of other rows."""
        return replace(self, matched=tuple(data))

    def plan(self) -> ResultPlan:
        """Return it ready to run."""
        return ResultPlan(tuple(input_of(each) for each in self.matched), self.columns)


@dataclass(frozen=True, slots=True)
class ResultPlan:
    """What it reads, and how many cells tell about each query."""

    inputs: tuple[Input, ...]
    columns: int

    @property
    def stateful(self) -> bool:
        """Return True: it remembers results."""
        return True

    def result(self, name: str, shape: Shape) -> RecordType[Any]:  # noqa: ARG002
        """Return the type of its results."""
        return NEWS

    def machine(
        self,
        store: Store,
        record: RecordType[Any],  # noqa: ARG002 - there is one type
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> ResultMachine:
        """Return what does the work."""
        return ResultMachine(store, self.columns)

    def finished(self) -> ResultPlan:
        """Return the same."""
        return self

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes."""
        return {"columns": str(self.columns)}

    def holds(self) -> tuple[str, ...]:
        """Return what state it holds."""
        return ("for each query everything that it finds, while somebody renews it",)
