"""One aggregate of a group whose rows come and go: it adds values, and subtracts them exactly.

Counts, sums and means are subtracted as numbers; sums of floats are kept exactly, so that taking a
value back leaves no trace of it. A combiner of a user that has a method ``subtract(held, value)``
is asked to. For all others the values of the group are kept, each with how often it is there, and
the result is computed of them.
"""

from typing import Any, Protocol

from penstock.core.aggregates.collect import Collect
from penstock.core.aggregates.count import Count
from penstock.core.aggregates.extremes import Max, Min
from penstock.core.aggregates.sums import Mean, Sum
from penstock.core.keyed.bag import Bag
from penstock.core.panes.bucket import MemoryStore, Store
from penstock.core.rollup.resolve import Measure

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
        return _Summed(mean=type(combiner) is Mean)
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


class _Summed:
    """A sum as a whole number of 2^-n, with n as large as a value needs: exact for floats too."""

    keeps_values = False
    bag: Bag | None = None

    def __init__(self, *, mean: bool) -> None:
        self._mean = mean

    def zero(self) -> list[int]:
        """Return the sum, its n, how many values there are, and how many of them are floats."""
        return [0, 0, 0, 0]

    def add(self, _key: bytes, held: list[int], value: Any) -> list[int]:
        return self._plus(held, value, 1)

    def subtract(self, _key: bytes, held: list[int], value: Any) -> list[int]:
        return self._plus(held, value, -1)

    def result(self, _key: bytes, held: list[int]) -> Any:
        total, scale, count, floats = held
        if not count:
            return None
        try:
            if self._mean:
                return total / (count << scale)
            return total / (1 << scale) if floats else total >> scale
        except OverflowError:
            return None

    def _plus(self, held: list[int], value: Any, sign: int) -> list[int]:
        if value is None:
            return held
        total, scale, count, floats = held
        if isinstance(value, float):
            number, denominator = value.as_integer_ratio()
            needs = denominator.bit_length() - 1
            floats += sign
        else:
            number, needs = value, 0
        if needs > scale:
            total, scale = total << (needs - scale), needs
        count += sign
        total += sign * (number << (scale - needs))
        return [total, scale, count, floats] if count else [0, 0, 0, 0]


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
        if type(self._combiner) is Min:
            return self._bag.first(key)
        if type(self._combiner) is Max:
            return self._bag.last(key)
        counts = self._bag.counts(key)
        values = self._bag.values(key)
        if type(self._combiner) is Collect:
            return [value for value in values for _ in range(counts[value])]
        held = self._combiner.zero()
        for value in values:
            for _ in range(counts[value]):
                held = self._combiner.add(held, value)
        return self._combiner.result(held)

    def _is_null(self, value: Any) -> bool:
        """Return whether there is no value; it may come with its event time."""
        return (value[1] if self._stamped else value) is None
