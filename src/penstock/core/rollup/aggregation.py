"""A windowed aggregation as a value: declared once, run by Spark, a service, a batch or a test.

::

    by_minute = (
        readings.where("celsius > -273.15")
        .window(fixed("1m"), by="device", lateness="10m")
        .trigger(on_watermark(early=every("5s"), late=every_record()))
        .accumulate(retracting)
        .aggregate(fahrenheit=mean("celsius * 1.8 + 32"), readings=count())
    )
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol

from penstock.core.aggregates.aggregate import Aggregate
from penstock.core.derived.deduplication import Deduplicated, deduplicated
from penstock.core.derived.repartition import Repartitioned
from penstock.core.derived.selected import ReadSelection, Selected, read_selection
from penstock.core.derived.selecting import SelectingPlan
from penstock.core.derived.steps import Declared, Flattened
from penstock.core.joins.declared import How, On, Span
from penstock.core.joins.join import Join, joined
from penstock.core.panes.machine import Windowing
from penstock.core.panes.triggers import Trigger
from penstock.core.panes.windows import WindowKind
from penstock.core.place import caller
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import RecordType
from penstock.core.rollup.windowing import microseconds
from penstock.core.topic import TopicSpec
from penstock.errors import Place, Problem

__all__ = [
    "Aggregation",
    "Mode",
    "Selection",
    "Windowed",
    "accumulating",
    "discarding",
    "retracting",
]

Mode = Literal["discarding", "accumulating", "retracting"]

discarding: Final = "discarding"
"""A pane holds what has arrived since the last one. A table cannot be filled so."""
accumulating: Final = "accumulating"
"""A pane holds everything so far. This is the default."""
retracting: Final = "retracting"
"""A pane holds everything so far, and the result that it replaces is withdrawn before it."""


class Readable(Protocol):
    """What a selection needs of the stream that it reads."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def record(self) -> RecordType[Any]:
        """Return the type of its records."""

    @property
    def topic(self) -> TopicSpec:
        """Return the topic that they are on."""

    @property
    def event_time(self) -> EventTime:
        """Return how its watermark follows them."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Some records of a stream, as they are or as other fields that are computed from them.

    ``stream.where``, ``stream.select`` and others begin one. ``app.stream`` takes it: the selection
    is then a stream of its own. ``window`` and ``deduplicate`` go on from it.

    Examples:
        >>> warm = readings.where("celsius > 0").select(device="device", kelvin="celsius + 273.15")
        >>> result = warm.window(fixed("1m"), by="device").aggregate(kelvin=mean("kelvin"))
        >>> in_kelvin = app.stream("in_kelvin", warm, on="services")
    """

    stream: Readable
    steps: tuple[Declared, ...] = ()
    """A text is a condition; pairs are the fields that take the place of those before."""

    kind = "selection"

    def where(self, condition: str) -> Selection:
        """Keep the records for which the expression is true; false and null are left out."""
        return replace(self, steps=(*self.steps, condition))

    def select(self, /, **fields: str) -> Selection:
        """Compute new fields from the old ones.

        In windows the event time stays the record's. A stream of its own has a key and an event
        time where the fields of the old ones are among the new, under whatever name.
        """
        return replace(self, steps=(*self.steps, tuple(fields.items())))

    def flatten(self, field: str) -> Selection:
        """Make a record for each item of a list; the item takes the list's place.

        A record whose list is empty gives none. Items keep their order.
        """
        return replace(self, steps=(*self.steps, Flattened(field)))

    def branch(self, *conditions: str) -> tuple[Selection, ...]:
        """Split the records: each goes to the first condition that is true, else to the last.

        There is one selection for each condition, and one for the rest.
        """
        left = self
        branches: list[Selection] = []
        for condition in conditions:
            branches.append(left.where(condition))
            left = left.where(f"not coalesce({condition}, false)")
        return (*branches, left)

    def repartition(self, *, by: str | tuple[str, ...]) -> Repartitioned:
        """Give the records another key: they go to the partition of these fields."""
        names = tuple(by) if isinstance(by, tuple | list) else (by,)
        return Repartitioned(selected=self.selected, by=names, place=caller())

    def deduplicate(
        self, *, by: str | tuple[str, ...] | Mapping[str, str], within: str
    ) -> Deduplicated:
        """Leave out records that came before, within a span of event time.

        Two are the same where their keys and the values of ``by`` are: fields, or a dict from names
        to expressions.
        """
        return deduplicated(self.selected, by, within, caller())

    @property
    def selected(self) -> Selected:
        """The stream with the steps."""
        return Selected(self.stream, self.steps)

    @property
    def place(self) -> Place | None:
        """Where it was declared: where it is used."""
        return None

    @property
    def reads(self) -> tuple[Any, ...]:
        """What it reads."""
        return (self.stream,)

    def reading(self, data: Sequence[Any]) -> Selection:
        """Return the same of another stream."""
        return replace(self, stream=data[0])

    def plan(self) -> SelectingPlan | list[Problem]:
        """Return it ready to run as a stream of its own, or everything that is wrong with it."""
        found = read_selection(self.selected, None)
        return SelectingPlan((found,)) if isinstance(found, ReadSelection) else found

    def join(
        self,
        other: Any,
        *,
        on: On,
        how: How = "inner",
        within: Span | None = None,
        before: Span | None = None,
        after: Span | None = None,
        lateness: Span = "0s",
        wait: Span | None = None,
        repartition: bool = False,
        names: tuple[str, str] | None = None,
    ) -> Join:
        """Join these records with another stream, or with the rows of a table; see `Stream.join`.

        Examples:
            >>> names = app.table("names", Alarm)
            >>> named = readings.where("celsius > 30").join(names, on="device")
            >>> hot = app.stream("hot_and_named", named, on="services")
        """
        return joined(
            self,
            other,
            on=on,
            how=how,
            within=within,
            before=before,
            after=after,
            lateness=lateness,
            wait=wait,
            repartition=repartition,
            names=names,
        )

    def window(
        self,
        windows: WindowKind,
        *,
        by: str | tuple[str, ...] | Mapping[str, str] = (),
        lateness: str = "0s",
        time: Literal["event", "processing"] = "event",
    ) -> Windowed:
        """Put the records into windows, for each value of the ``by`` fields on its own.

        ``by`` names fields, or is a dict from names to expressions.
        """
        names: Any = by if isinstance(by, tuple | list) else (by,)
        fields = tuple((name, f"`{name}`") for name in names)
        return Windowed(
            selection=self,
            by=tuple(by.items()) if isinstance(by, Mapping) else fields,
            time=time,
            windowing=Windowing(windows=windows, lateness=microseconds(lateness)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowed:
    """The records of a stream in windows, and when each window gives a pane.

    ``.trigger`` and ``.accumulate`` return another one; ``.aggregate`` returns what ``app.stream``
    and ``app.table`` take in place of a record type.

    Examples:
        >>> windowed = readings.window(fixed("1m"), by="device", lateness="10m")
        >>> windowed = windowed.trigger(on_watermark(late=every_record())).accumulate(retracting)
        >>> result = windowed.aggregate(readings=count())
        >>> panes = app.stream("panes", result, on="services")
    """

    selection: Selection
    windowing: Windowing
    by: tuple[tuple[str, str], ...] = ()
    """Names and expressions."""
    time: Literal["event", "processing"] = "event"

    def trigger(self, trigger: Trigger) -> Windowed:
        """Say when a window gives a pane; by default at its end, and then for every late record."""
        return replace(self, windowing=replace(self.windowing, trigger=trigger))

    def accumulate(
        self,
        mode: Mode,
        *,
        stamp: Literal["end", "earliest", "latest"] = "end",
        final_pane: Literal["if_new", "always"] = "if_new",
        on_time_pane: Literal["always", "if_new"] = "always",
    ) -> Windowed:
        """Say what a pane holds: what is new, all so far, or all with the last one withdrawn."""
        windowing = replace(
            self.windowing,
            mode=mode,
            stamp=stamp,
            final_pane=final_pane,
            on_time_pane=on_time_pane,
        )
        return replace(self, windowing=windowing)

    def aggregate(self, /, **aggregates: Aggregate) -> Aggregation:
        """Name what is computed of each window: a keyword is the name of a field of the result."""
        return Aggregation(windowed=self, aggregates=tuple(aggregates.items()), place=caller())


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """A whole windowed aggregation; equal ones give the same panes."""

    windowed: Windowed
    aggregates: tuple[tuple[str, Aggregate], ...]
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def stream(self) -> Readable:
        """The stream it reads."""
        return self.windowed.selection.stream
