"""Several streams of one kind of record as one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.derived.selected import ReadSelection, Selected, read_selection
from penstock.core.derived.selecting import SelectingPlan
from penstock.core.place import caller
from penstock.core.records.schema import Schema
from penstock.errors import Place, Problem

__all__ = ["Merged", "merge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The records of several streams; ``merge`` makes it, ``app.stream`` takes it."""

    selections: tuple[Selected, ...]
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: str = field(default="merge", init=False)

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return tuple(each.data for each in self.selections)

    def reading(self, data: Sequence[Any]) -> Merged:
        """Return the same of other streams."""
        pairs = zip(self.selections, data, strict=True)
        return replace(self, selections=tuple(each.reading(one) for each, one in pairs))

    def plan(self) -> SelectingPlan | list[Problem]:
        """Return it ready to run, or everything that is wrong with it."""
        problems: list[Problem] = []
        reads: list[ReadSelection] = []
        for each in self.selections:
            found = read_selection(each, self.place)
            if isinstance(found, ReadSelection):
                reads.append(found)
            else:
                problems += found
        if not self.selections:
            hint = "merge(readings, more_readings)"
            problems.append(Problem("merge.nothing", "nothing is merged", hint, self.place))
        for other in reads[1:]:
            problems += _differences(reads[0], other, self.place)
        tables = [each.input.name for each in reads if each.input.kind != "stream"]
        if tables:
            text = f"{', '.join(tables)} cannot be merged: only streams can"
            problems.append(Problem("merge.table", text, "join tables instead", self.place))
        names = [each.input.name for each in reads]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            text = f"{', '.join(twice)} is merged with itself: a record could come twice"
            hint = 'one condition, .where("x < 0 or x > 60"), or each as a stream: app.stream(...)'
            problems.append(Problem("merge.twice", text, hint, self.place))
        return problems or SelectingPlan(tuple(reads))


def merge(*streams: Any) -> Merged:
    """Merge streams of one type of record, or what was selected of them, into one stream.

    The records of each partition keep their order; between streams there is none. All need the same
    fields, the same key and the same event time. ``penstock check`` says where they have not.

    Examples:
        >>> both = app.stream("both", merge(readings, copies), on="services")
        >>> from penstock.testing import Driver
        >>> driver = Driver(app)
        >>> driver.pipe(readings, Reading("boiler", datetime(2026, 1, 1, tzinfo=UTC), 71.5))
        >>> driver.pipe(copies, Reading("oven", datetime(2026, 1, 1, tzinfo=UTC), 180.0))
        >>> sorted(reading.device for reading in driver.read(both))
        ['boiler', 'oven']
    """
    return Merged(selections=tuple(Selected.of(each) for each in streams), place=caller())


def _differences(first: ReadSelection, other: ReadSelection, place: Place | None) -> list[Problem]:
    def plain(schema: Schema) -> Schema:
        return replace(schema, name="")

    if plain(first.schema) == plain(other.schema):
        return []
    one, two = _facts(first.schema), _facts(other.schema)
    different = [
        f"{what}: {one.get(what, 'none')} and {two.get(what, 'none')}" for what in one | two
    ]
    shown = "; ".join(
        text
        for text, what in zip(different, one | two, strict=True)
        if one.get(what) != two.get(what)
    )
    text = f"{first.input.name!r} and {other.input.name!r} hold different records: {shown}"
    hint = f"select the same of both: merge({first.input.name}.select(...), ...)"
    return [Problem("merge.types", text, hint, place)]


def _facts(schema: Schema) -> dict[str, str]:
    fields = {f"field {each.name}": str(each).partition(": ")[2] for each in schema.fields}
    order = ", ".join(each.name for each in schema.fields)
    return fields | {
        "key": ", ".join(schema.key) or "none",
        "event time": schema.time or "none",
        "order of fields": order,
    }
