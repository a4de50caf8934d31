"""An aggregation of a table as a value.

::

    by_owner = devices.group(by="owner").aggregate(devices=count(), load=total("load"))
    app.table("by_owner", by_owner, on="services")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal, Self, TypeAlias

from penstock.core.aggregates.aggregate import Aggregate
from penstock.core.derived.selected import ReadSelection, Selected, read_selection
from penstock.core.instants import MICROSECOND
from penstock.core.operators.inputs import input_of
from penstock.core.operators.operator import Inner
from penstock.core.place import caller
from penstock.core.rollup.resolve import Group, Measure, MeasureReader
from penstock.core.tables.changes import ChangePlan
from penstock.core.tables.totals import TotalPlan
from penstock.core.units import UnitError, duration
from penstock.errors import Place, Problem

__all__ = ["Empty", "Grouped", "TableAggregation", "grouped"]

Empty: TypeAlias = Literal["delete", "keep"]

_OWN = ("at",)
"""Fields that results have by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """The rows of a table in groups; ``table.group`` makes it.

    Examples:
        >>> latest = app.table("latest", Reading)
        >>> by_day = latest.group(by={"day": "date(at)"})
        >>> counts = app.table("counts", by_day.aggregate(devices=count()), on="services")
    """

    selected: Selected
    by: tuple[tuple[str, str], ...]
    """Names and expressions."""
    empty: Empty

    def aggregate(self, /, **aggregates: Aggregate) -> TableAggregation:
        """Name what is computed of each group: a keyword is the name of a field of the result.

        Examples:
            >>> latest = app.table("latest", Reading)
            >>> by_day = latest.group(by={"day": "date(at)"}).aggregate(
            ...     devices=count(), warmest=maximum("celsius")
            ... )
            >>> app.table("days", by_day, on="services").record.schema.key
            ('day',)
        """
        return TableAggregation(grouped=self, aggregates=tuple(aggregates.items()), place=caller())


def grouped(
    selected: Selected, by: str | tuple[str, ...] | Mapping[str, str], empty: Empty
) -> Grouped:
    """Return the declaration, from what the user gave."""
    names: Any = by if isinstance(by, tuple | list) else (by,)
    pairs = by.items() if isinstance(by, Mapping) else [(name, f"`{name}`") for name in names]
    return Grouped(selected=selected, by=tuple(pairs), empty=empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAggregation:
    """A whole aggregation of a table; ``app.table`` takes it in place of a record type."""

    grouped: Grouped
    aggregates: tuple[tuple[str, Aggregate], ...]
    held_for: Any = None
    most_held: Any = None
    given: tuple[Any, ...] | None = None
    place: Place | None = field(default=None, compare=False, repr=False)

    kind = "table aggregation"

    def hold(self, span: str | timedelta | None = None, *, groups: int | None = None) -> Self:
        """Hold results back, so that of many changes of a group only the last one comes out.

        A result comes out when event time is ``span`` past the first change of its group since the
        last one came out, or when more than ``groups`` results are held back: then the one that has
        been held longest. The groups that are held back are in memory.

        Examples:
            >>> latest = app.table("latest", Reading)
            >>> days = latest.group(by={"day": "date(at)"}).aggregate(devices=count())
            >>> held = app.table("held_days", days.hold("10s", groups=1000), on="services")
        """
        return replace(self, held_for=span, most_held=groups)

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads: what each change of a row means for its groups."""
        if self.given is not None:
            return self.given
        return (Inner("changes", GroupChanges(aggregation=self)),)

    def reading(self, data: Sequence[Any]) -> TableAggregation:
        """Return the same over other changes."""
        return replace(self, given=tuple(data))

    def plan(self) -> TotalPlan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""
        found = self.read()
        if isinstance(found, list):
            return found
        _, groups, measures = found
        # Without what a host declares it is only to see what the plan is.
        read = self.given[0] if self.given else self.grouped.selected.data
        given = replace(input_of(read), kind="stream", rule=None)
        return TotalPlan(
            given,
            groups,
            measures,
            keeps_empty=self.grouped.empty == "keep",
            held_for=None if self.held_for is None else duration(self.held_for) // MICROSECOND,
            most_held=self.most_held,
        )

    def read(self) -> tuple[ReadSelection, tuple[Group, ...], tuple[Measure, ...]] | list[Problem]:
        """Return the expressions, read, or everything that is wrong with them."""
        selection = read_selection(self.grouped.selected, self.place)
        if not isinstance(selection, ReadSelection):
            return selection
        reader = MeasureReader(selection.schema, self.place)
        if selection.input.kind != "table":
            text = f"{selection.input.name!r} is not a table"
            reader.wrong("group.table", text, ".window(...) groups the records of a stream")
        if self.grouped.empty not in ("delete", "keep"):
            reader.wrong("group.empty", f"there is no {self.grouped.empty!r}", '"delete" or "keep"')
        self._holds(reader)
        if not self.grouped.by:
            reader.wrong("group.by", "it names no field", '.group(by="owner")')
        if not self.aggregates:
            reader.wrong("aggregate.none", "it computes nothing", ".aggregate(rows=count())")
        names = [name for name, _ in (*self.grouped.by, *self.aggregates)]
        for name in dict.fromkeys(names):
            if names.count(name) > 1 or name in _OWN:
                text = f"the name {name!r} is taken"
                reader.wrong("aggregate.name", text, "give the result another name")
        groups = [reader.group(name, text, nullable=True) for name, text in self.grouped.by]
        measures = [reader.measure(name, each) for name, each in self.aggregates]
        if reader.problems:
            return reader.problems
        return (
            selection,
            tuple(each for each in groups if each),
            tuple(each for each in measures if each),
        )

    def _holds(self, reader: MeasureReader) -> None:
        try:
            if self.held_for is not None and duration(self.held_for) <= timedelta():
                reader.wrong("group.hold", "in no time nothing is held back", '.hold("10s")')
        except UnitError as error:
            reader.wrong("group.hold", str(error), '.hold("10s")')
        most = self.most_held
        if most is not None and not (isinstance(most, int) and most > 0):
            reader.wrong("group.hold", f"groups: {most!r} is no number of groups", "groups=1000")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChanges:
    """What groups lose and gain when a row changes, each to the partition of its group."""

    aggregation: TableAggregation

    kind = "changes of groups"

    @property
    def place(self) -> Place | None:
        """Where it was declared."""
        return self.aggregation.place

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return (self.aggregation.grouped.selected.data,)

    def reading(self, data: Sequence[Any]) -> GroupChanges:
        """Return the same of another table."""
        inner = self.aggregation.grouped
        of = replace(inner, selected=inner.selected.reading(data[0]))
        return replace(self, aggregation=replace(self.aggregation, grouped=of))

    def plan(self) -> ChangePlan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""
        found = self.aggregation.read()
        if isinstance(found, list):
            return found
        selection, groups, measures = found
        span = getattr(self.aggregation.grouped.selected.data, "history", None)
        history = None if span is None else span // MICROSECOND
        return ChangePlan(selection, groups, measures, history)
