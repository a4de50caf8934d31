"""One aggregate of a group whose rows come and go: it adds values, and subtracts them exactly.

Counts, sums, means and variances are subtracted as whole numbers; sums of floats are kept exactly,
so that taking a value back leaves no trace of it. A combiner that has a method ``subtract(held,
value)`` is asked to. For all others the values of the group are kept, each with how often it is
there: those at the ends are found, others counted. What a combiner of a user makes of them is kept
for each page of values, and merged in a tree: a change computes one page, and merges as often as
the number of pages can be halved.
"""

from collections.abc import Callable
from typing import Any, Protocol

from penstock.core.aggregates.approximatedistinct import ApproximateDistinct
from penstock.core.aggregates.collect import Collect
from penstock.core.aggregates.count import Count
from penstock.core.aggregates.distinct import Distinct
from penstock.core.aggregates.ends import First, Last
from penstock.core.aggregates.extremes import Max, Min
from penstock.core.aggregates.sums import Mean, Sum
from penstock.core.aggregates.top import Top
from penstock.core.aggregates.variance import Variance
from penstock.core.keyed.bag import Bag
from penstock.core.panes.store import MemoryStore, Store
from penstock.core.rollup.resolve import Measure
from penstock.core.tables.merged import merged
from penstock.core.tables.sums import Summed, Varied

__all__ = ["Column", "column_of"]


class Column(Protocol):
    """What a group holds of one aggregate."""

    keeps_values: bool
    bag: Bag | None

    def zero(self) -> Any:
        """Return what an empty group holds."""

    def add(self, key: bytes, held: Any, value: Any) -> Any:
        """Return what a group holds with one more value."""

    def subtract(self, key: bytes, held: Any, value: Any) -> Any:
        """Return what a group holds without a value that was added before."""

    def result(self, key: bytes, held: Any) -> Any:
        """Return the result, as plain data."""


def column_of(measure: Measure, place: tuple[Store, bytes] | None) -> Column:
    """Return the column of an aggregate; ``place`` is where values are kept, if they are."""
    combiner = measure.combiner
    if type(combiner) is Count:
        return _Counted()
    if type(combiner) in (Sum, Mean):
        return Summed(mean=type(combiner) is Mean)
    if type(combiner) is Variance:
        return Varied()
    if callable(getattr(combiner, "subtract", None)):
        return _Subtracting(combiner)
    store, tag = (MemoryStore(), b"v") if place is None else place
    return _Collected(combiner, Bag(store, tag=tag), stamped=measure.form.stamped)


class _Counted:
    """How many values there are."""

    keeps_values = False
    bag: Bag | None = None

    def zero(self) -> int:
        return 0

    def add(self, _key: bytes, held: int, value: Any) -> int:
        return held + (value is not None)

    def subtract(self, _key: bytes, held: int, value: Any) -> int:
        return held - (value is not None)

    def result(self, _key: bytes, held: int) -> int:
        return held


class _Subtracting:
    """A combiner that can subtract."""

    keeps_values = False
    bag: Bag | None = None

    def __init__(self, combiner: Any) -> None:
        self._combiner = combiner

    def zero(self) -> Any:
        return self._combiner.zero()

    def add(self, _key: bytes, held: Any, value: Any) -> Any:
        return self._combiner.add(held, value)

    def subtract(self, _key: bytes, held: Any, value: Any) -> Any:
        return self._combiner.subtract(held, value)

    def result(self, _key: bytes, held: Any) -> Any:
        return self._combiner.result(held)


class _Collected:
    """The values themselves, in a bag."""

    keeps_values = True

    def __init__(self, combiner: Any, bag: Bag, *, stamped: bool) -> None:
        self._combiner = combiner
        self._stamped = stamped
        self.bag: Bag | None = bag
        self._bag = bag

    def zero(self) -> None:
        return None

    def add(self, key: bytes, _held: None, value: Any) -> None:
        if not self._is_null(value):
            self._bag.add(key, value)

    def subtract(self, key: bytes, _held: None, value: Any) -> None:
        if not self._is_null(value):
            self._bag.remove(key, value)

    def result(self, key: bytes, _held: None) -> Any:
        read = _READS.get(type(self._combiner))
        if read is not None:
            return read(self._bag, key, self._combiner)
        return merged(self._combiner, self._bag, key)

    def _is_null(self, value: Any) -> bool:
        """Return whether there is no value; it may come with its event time."""
        return (value[1] if self._stamped else value) is None


def _value(stamped: Any) -> Any:
    return None if stamped is None else stamped[1]


_READS: dict[type, Callable[[Bag, bytes, Any], Any]] = {
    Min: lambda bag, key, _: bag.first(key),
    Max: lambda bag, key, _: bag.last(key),
    First: lambda bag, key, _: _value(bag.first(key)),
    Last: lambda bag, key, _: _value(bag.last(key)),
    Distinct: lambda bag, key, _: bag.size(key),
    ApproximateDistinct: lambda bag, key, _: bag.size(key),
    Top: lambda bag, key, combiner: bag.largest(key, combiner.n),
    Collect: lambda bag, key, _: bag.all_of(key),
}
"""What the results are that are read off the values; those that are there are counted exactly."""
