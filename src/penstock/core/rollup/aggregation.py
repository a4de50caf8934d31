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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from penstock.core.panes.aggregates import (
    Collect,
    Count,
    Distinct,
    First,
    Last,
    Max,
    Mean,
    Min,
    Sum,
    Top,
    Variance,
)
from penstock.core.panes.machine import Windowing
from penstock.core.panes.sketches import ApproximateDistinct, Quantile
from penstock.core.place import caller
from penstock.core.rollup.windowing import microseconds

if TYPE_CHECKING:
    from penstock.core.panes.combiner import Combiner
    from penstock.core.panes.triggers import Trigger
    from penstock.core.panes.windows import WindowKind
    from penstock.core.records.eventtime import EventTime
    from penstock.core.records.record import RecordType
    from penstock.core.topic import TopicSpec
    from penstock.errors import Place

__all__ = [
    "Aggregate",
    "Aggregation",
    "Mode",
    "Selection",
    "Windowed",
    "accumulating",
    "approximate_distinct",
    "collect",
    "combine",
    "count",
    "discarding",
    "distinct",
    "first",
    "last",
    "maximum",
    "mean",
    "minimum",
    "quantile",
    "retracting",
    "top",
    "total",
    "variance",
]

Mode = Literal["discarding", "accumulating", "retracting"]

discarding: Final = "discarding"
accumulating: Final = "accumulating"
retracting: Final = "retracting"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One result of a window: a combiner over the values of an expression."""

    combiner: Combiner[Any, Any, Any]
    of: str | None = None
    """The expression; None: the record itself, which only a count can take."""
    gives: Any = None
    """The annotation of the result of a combiner that is not Penstock's own."""


def count(of: str | None = None) -> Aggregate:
    """How many records there are, or how many have a value that is not null."""
    return Aggregate(Count(), of)


def total(of: str) -> Aggregate:
    """The sum; null over no value."""
    return Aggregate(Sum(), of)


def mean(of: str) -> Aggregate:
    """The arithmetic mean; null over no value."""
    return Aggregate(Mean(), of)


def variance(of: str) -> Aggregate:
    """The sample variance; null over fewer than two values."""
    return Aggregate(Variance(), of)


def minimum(of: str) -> Aggregate:
    """The smallest value."""
    return Aggregate(Min(), of)


def maximum(of: str) -> Aggregate:
    """The largest value."""
    return Aggregate(Max(), of)


def first(of: str) -> Aggregate:
    """The value that happened first, by event time."""
    return Aggregate(First(), of)


def last(of: str) -> Aggregate:
    """The value that happened last, by event time."""
    return Aggregate(Last(), of)


def distinct(of: str) -> Aggregate:
    """How many different values there are, exactly: it keeps each of them."""
    return Aggregate(Distinct(), of)


def approximate_distinct(of: str) -> Aggregate:
    """About how many different values there are, within 2 % at one standard error."""
    return Aggregate(ApproximateDistinct(), of)


def quantile(of: str, share: float, *, error: float = 0.01) -> Aggregate:
    """A value with this share of all values below it, within a relative error."""
    return Aggregate(Quantile(share, error), of)


def top(of: str, n: int) -> Aggregate:
    """The n largest values, largest first."""
    return Aggregate(Top(n), of)


def collect(of: str) -> Aggregate:
    """Every value, smallest first; bounded only by the window."""
    return Aggregate(Collect(), of)


def combine(of: str, combiner: Combiner[Any, Any, Any], *, gives: Any) -> Aggregate:
    """Your own aggregate: zero, add, merge and result over plain data, and the type it gives.

    It is given numbers, texts and bools as they are, instants as microseconds and dates as days
    since 1970, decimals as whole numbers of 10^-18; what it holds must be plain data, too.
    """
    return Aggregate(combiner, of, gives)


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
    """Some records of a stream, as they are or as other fields computed from them."""

    stream: Readable
    steps: tuple[str | tuple[tuple[str, str], ...], ...] = ()
    """A text is a condition; pairs are the fields that take the place of those before."""

    def where(self, condition: str) -> Selection:
        """Keep the records for which the expression is true; false and null are left out."""
        return replace(self, steps=(*self.steps, condition))

    def select(self, **fields: str) -> Selection:
        """Compute new fields from the old ones; the event time stays the record's."""
        return replace(self, steps=(*self.steps, tuple(fields.items())))

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
    """Records in windows, and when and how these speak."""

    selection: Selection
    windowing: Windowing
    by: tuple[tuple[str, str], ...] = ()
    """Names and expressions."""
    time: Literal["event", "processing"] = "event"

    def trigger(self, trigger: Trigger) -> Windowed:
        """Say when a window gives a pane; by default at its end and for every late record."""
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

    def aggregate(self, **aggregates: Aggregate) -> Aggregation:
        """Name the results of a window."""
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
