"""The result of a query that aggregates: a set of groups, which change by events as documents do.

Sums are exact, whatever comes and goes. A group that has lost its least or largest value looks for
the next one among its members.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from penstock.core.live.order import IDENTITY
from penstock.core.live.query import Query
from penstock.core.live.results.event import Event, Match, Operation
from penstock.core.live.results.grouping import Grouping, LiveAggregate, value_at
from penstock.core.live.values import MISSING, order_of

__all__ = ["GroupedResult"]

_MOST_BITS = 10_000
"""A sum of more bits is null: few readers of JSON take so many digits."""
_ON_MATCH: dict[Match, Operation] = {"add": "insert", "change": "update", "remove": "delete"}


class GroupedResult:
    """The groups of a query; their members are held with the values that count."""

    def __init__(self, query: Query, grouping: Grouping) -> None:
        self._query = query
        self._grouping = grouping
        self._groups: dict[Any, _Group] = {}
        self._group_of: dict[Any, Any] = {}
        if not grouping.fields:
            self._groups[()] = _Group(grouping, ())

    def begin(self, documents: Iterable[Any]) -> list[Event]:
        """Begin with the documents that there are; return the first result as events."""
        for document in documents:
            if self._query.matches(document):
                self._put(order_of(document[IDENTITY]), document)
        return [Event("add", "none", each, initial=True) for each in self.documents]

    @property
    def documents(self) -> list[Any]:
        """The groups as they are now."""
        return [group.document() for group in self._groups.values()]

    def write(self, operation: Operation, identity: Any, document: Any) -> list[Event]:
        """Take one write; ``document`` is None for a deletion.

        The operation of an event says what became of the group.
        """
        del operation
        key = order_of(identity)
        concerned = {}
        if key in self._group_of:
            concerned[self._group_of[key]] = self._shown(self._group_of[key])
        matches = document is not None and self._query.matches(document)
        if matches:
            place = _place(self._grouping.key(document))
            concerned.setdefault(place, self._shown(place))
        self._take_out(key)
        if matches:
            self._put(key, document)
        events = [
            event
            for place, before in concerned.items()
            if (event := _event(before, self._shown(place))) is not None
        ]
        return sorted(events, key=lambda event: event.match != "remove")

    def _shown(self, place: Any) -> Any:
        group = self._groups.get(place)
        return None if group is None else group.document()

    def _put(self, key: Any, document: Any) -> None:
        values = self._grouping.key(document)
        place = _place(values)
        if (group := self._groups.get(place)) is None:
            group = self._groups[place] = _Group(self._grouping, values)
        group.put(key, document)
        self._group_of[key] = place

    def _take_out(self, key: Any) -> None:
        if key not in self._group_of:
            return
        place = self._group_of.pop(key)
        group = self._groups[place]
        group.take_out(key)
        if not group.members and self._grouping.fields:
            del self._groups[place]


class _Group:
    """One group: its members, and what they come to."""

    def __init__(self, grouping: Grouping, key: tuple[Any, ...]) -> None:
        self._grouping = grouping
        self._head = {
            IDENTITY: grouping.identity(key),
            **dict(zip(grouping.fields, key, strict=True)),
        }
        self._totals = [_Total(each) for each in grouping.aggregates]
        self.members: dict[Any, list[Any]] = {}

    def put(self, key: Any, document: Any) -> None:
        """Take in a member."""
        values = [
            None if not each.path else _known(value_at(document, each.path))
            for each in self._grouping.aggregates
        ]
        self.members[key] = values
        for total, value in zip(self._totals, values, strict=True):
            total.add(value)

    def take_out(self, key: Any) -> None:
        """Lose a member."""
        for total, value in zip(self._totals, self.members.pop(key), strict=True):
            total.remove(value)

    def document(self) -> dict[str, Any]:
        """Return the group as the result has it."""
        found = dict(self._head)
        for at, total in enumerate(self._totals):
            found[total.of.name] = total.value(self.members, at)
        return found


class _Total:
    """One aggregate of one group."""

    def __init__(self, of: LiveAggregate) -> None:
        self.of = of
        self._count = 0
        self._floats = 0
        self._decimals = 0
        self._sum = Fraction()
        self._extreme: Any = None
        self._known = True

    def add(self, value: Any) -> None:
        """Count a value."""
        if self.of.how in ("min", "max"):
            if value is not None and self._known and self._is_beyond(value):
                self._extreme = value
        elif self.of.how != "count" and _is_number(value):
            self._change(value, 1)

    def remove(self, value: Any) -> None:
        """Count a value no more."""
        if self.of.how in ("min", "max"):
            if value is not None and self._known:
                self._known = order_of(value) != order_of(self._extreme)
        elif self.of.how != "count" and _is_number(value):
            self._change(value, -1)

    def value(self, members: dict[Any, list[Any]], at: int) -> Any:
        """Return the aggregate; ``at`` says which value of each member counts."""
        how = self.of.how
        if how == "count":
            return len(members)
        if how in ("min", "max"):
            if not self._known:
                self._known, self._extreme = True, None
                for values in members.values():
                    self.add(values[at])
            return self._extreme
        if how == "mean":
            return _float(self._sum / self._count) if self._count else None
        if self._floats:
            return _float(self._sum)
        if self._decimals:
            return Decimal(self._sum.numerator) / Decimal(self._sum.denominator)
        return int(self._sum) if self._sum.numerator.bit_length() <= _MOST_BITS else None

    def _change(self, value: Any, sign: int) -> None:
        self._count += sign
        self._floats += sign * (type(value) is float)
        self._decimals += sign * (type(value) is Decimal)
        self._sum += sign * Fraction(value)

    def _is_beyond(self, value: Any) -> bool:
        if self._extreme is None:
            return True
        one, other = order_of(value), order_of(self._extreme)
        return one < other if self.of.how == "min" else one > other


def _event(before: Any, after: Any) -> Event | None:
    if before == after:
        return None
    match: Match = "add" if before is None else "remove" if after is None else "change"
    return Event(match, _ON_MATCH[match], before if after is None else after)


def _place(key: tuple[Any, ...]) -> Any:
    return tuple(order_of(value) for value in key)


def _known(value: Any) -> Any:
    return None if value is MISSING else value


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    if isinstance(value, int):
        return True
    return value.is_finite() if isinstance(value, Decimal) else isfinite(value)


def _float(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:  # no number of JSON readers is as large
        return None
