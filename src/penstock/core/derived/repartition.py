"""The same records under another key: each goes to the partition of that key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.derived.selected import ReadSelection, Selected, read_selection
from penstock.core.derived.selecting import SelectingPlan
from penstock.core.hints import did_you_mean
from penstock.core.records.record import is_key_type
from penstock.errors import Place, Problem

__all__ = ["Repartitioned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartitioned:
    """The records of a stream, keyed by other fields of theirs.

    ``stream.repartition(by=...)`` makes it. Operators that need other keys than their input has
    read one of these (`Inner`).
    """

    selected: Selected
    by: tuple[str, ...]
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: str = field(default="repartitioning", init=False)

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return (self.selected.data,)

    def reading(self, data: Sequence[Any]) -> Repartitioned:
        """Return the same of another stream."""
        return replace(self, selected=self.selected.reading(data[0]))

    def plan(self) -> SelectingPlan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""
        found = read_selection(self.selected, self.place)
        if not isinstance(found, ReadSelection):
            return found
        problems = [problem for name in self.by for problem in self._wrong(found, name)]
        if not self.by:
            hint = '.repartition(by="device")'
            problems.append(Problem("repartition.by", "it names no field", hint, self.place))
        if found.input.kind == "table":
            text = f"table {found.input.name!r} cannot be repartitioned: its rows have their keys"
            hint = "group it, or write its rows into a stream"
            problems.append(Problem("repartition.table", text, hint, self.place))
        return problems or SelectingPlan((found,), key=self.by)

    def _wrong(self, found: ReadSelection, name: str) -> list[Problem]:
        known = found.schema.field(name)
        if known is None:
            hint = did_you_mean(name, [each.name for each in found.schema.fields])
            text = f"{found.schema.name} has no field {name!r}"
        elif known.nullable or not is_key_type(known.type):
            text = f"the key {name!r} is {str(known).partition(': ')[2]}"
            hint = "a key is a text, an int, a bool, a date, an instant or a choice; never null"
        else:
            return []
        return [Problem("repartition.by", text, hint, self.place)]
