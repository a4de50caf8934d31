"""Each record once within a span of event time: the declaration and the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.derived.once import OnceMachine
from penstock.core.derived.selected import (
    ReadSelection,
    Selected,
    read_selection,
    record_of_results,
)
from penstock.core.derived.steps import TextReader
from penstock.core.expression import Expression
from penstock.core.instants import MICROSECOND
from penstock.core.operators.operator import Input, RowLookup, Shape
from penstock.core.operators.plans import StatefulPlan
from penstock.core.options import UnreadableSpan, span_of
from penstock.core.panes.store import Store
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.records.record import RecordType
from penstock.core.units import duration_text
from penstock.errors import Place, Problem

__all__ = ["Deduplicated", "DeduplicatingPlan", "deduplicated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplicated:
    """The records of a stream, each once; ``stream.deduplicate`` makes it."""

    selected: Selected
    by: tuple[tuple[str, str], ...]
    """Names and expressions."""
    within: int | UnreadableSpan
    """In microseconds."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: str = field(default="deduplication", init=False)

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return (self.selected.data,)

    def reading(self, data: Sequence[Any]) -> Deduplicated:
        """Return the same of another stream."""
        return replace(self, selected=self.selected.reading(data[0]))

    def plan(self) -> DeduplicatingPlan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""
        found = read_selection(self.selected, self.place)
        if not isinstance(found, ReadSelection):
            return found
        reader = TextReader(found.schema, self.place)
        by = [(name, reader.expression(text)) for name, text in self.by]
        within = self.within
        if isinstance(within, UnreadableSpan):
            reader.wrong("deduplicate.within", within.problem, 'within="1h", for example')
        elif within <= 0:
            reader.wrong(
                "deduplicate.within", "in no time nothing comes twice", 'within="1h", for example'
            )
        if not self.by:
            reader.wrong("deduplicate.by", "it names no field", '.deduplicate(by="id", ...)')
        if found.input.kind != "stream":
            hint = "its rows are one for each key already"
            reader.wrong("deduplicate.table", f"{found.input.name!r} is a table", hint)
        if lost := _lost_key(found, self.by, self.place):
            reader.problems.append(lost)
        if reader.problems or isinstance(within, UnreadableSpan):
            return reader.problems
        read = tuple((name, each) for name, each in by if each)
        return DeduplicatingPlan(found, read, within)


def deduplicated(
    selected: Selected,
    by: str | tuple[str, ...] | Mapping[str, str],
    within: Any,
    place: Place | None,
) -> Deduplicated:
    """Return the declaration, from what the user gave."""
    names: Any = by if isinstance(by, tuple | list) else (by,)
    pairs = by.items() if isinstance(by, Mapping) else [(name, f"`{name}`") for name in names]
    span = span_of(within)
    micros = span if isinstance(span, UnreadableSpan) else span // MICROSECOND
    return Deduplicated(selected=selected, by=tuple(pairs), within=micros, place=place)


def _lost_key(
    read: ReadSelection, by: tuple[tuple[str, str], ...], place: Place | None
) -> Problem | None:
    """Return what is wrong where records are selected without the key that they are parted by.

    Those that look equal then are in different partitions: nobody could tell that both came.
    """
    key = read.input.record.schema.key
    if not key or read.schema.key:
        return None
    name = read.input.name
    keys = ", ".join(repr(each) for each in key)
    text = f"deduplicate is per key, but what is selected of {name!r} is without its key ({keys})"
    field = by[0][0] if by else "id"
    hint = f"select {keys} too, or key what is selected through a topic: "
    hint += f'app.stream(..., {name}.select(...).repartition(by="{field}"), on="services")'
    return Problem("operator.no-key", text, hint, place)


@dataclass(frozen=True, slots=True)
class DeduplicatingPlan(StatefulPlan):
    """What is kept of each record that came: its key, its values of ``by``, its event time."""

    selection: ReadSelection
    by: tuple[tuple[str, Expression], ...]
    within: int

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it reads: where records have no event time, that of the log is theirs."""
        given = self.selection.input
        return (given if given.rule is not None else replace(given, rule=WatermarkRule()),)

    def result(self, name: str, shape: Shape) -> RecordType[Any]:  # noqa: ARG002 - for both alike
        """Return the type of its results."""
        return record_of_results(name, (self.selection,))

    def machine(
        self,
        store: Store,
        record: RecordType[Any],
        *,
        broadcasts: Mapping[str, RowLookup],  # noqa: ARG002 - it looks nothing up
    ) -> OnceMachine:
        """Return what does the work."""
        return OnceMachine(
            self.selection,
            [expression for _, expression in self.by],
            self.within,
            inputs=self.inputs,
            store=store,
            made=record.cls,
        )

    def declaration(self) -> Mapping[str, str]:
        """Return what it computes; for how long may change without harm."""
        by = ", ".join(f"{name} = {each.text}" for name, each in self.by)
        return self.selection.words() | {"by": by}

    def holds(self) -> tuple[str, ...]:
        """Return what it remembers and for how long."""
        span = duration_text(2 * self.within * MICROSECOND)
        names = ", ".join(name for name, _ in self.by)
        what = f"the key, {names} and the event time of each record that was passed on"
        return (f"{what}, until event time is {span} past it",)
