"""The result of one live query, and what changes in it with each write.

A result is asked to take one write after the other, and says which events that causes. Events
follow the write: what leaves comes first, then what changes or comes in. An object that was only
pushed along by others has no event of its own.

An ordered result holds what its limit reaches, and a bounded **reserve** behind it. What moves up
from the reserve is known at once. Where the reserve is empty and there may be more in the table,
the result asks for it: ``refill``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from penstock.core.live.order import IDENTITY, Place
from penstock.core.live.query import Query
from penstock.core.live.results.event import Event, Match, Operation
from penstock.core.live.results.grouped import GroupedResult
from penstock.core.live.values import order_of

__all__ = ["RESERVE", "Event", "LiveResult", "Match", "Operation", "Refill", "live_result"]

RESERVE = 100
"""How many documents behind its limit an ordered result holds."""

Refill = Callable[[int], Iterable[Any]]
"""Returns the first so many documents that match, in order, from the table as it is now."""


class _SetResult:
    """A result without an order."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._members: dict[Any, Any] = {}

    def begin(self, documents: Iterable[Any]) -> list[Event]:
        """Begin with the documents that there are; return the first result as events."""
        matches = self._query.matches
        for document in documents:
            if matches(document):
                self._members[order_of(document[IDENTITY])] = document
        shown = self._query.shown
        return [Event("add", "none", shown(each), initial=True) for each in self._members.values()]

    @property
    def documents(self) -> list[Any]:
        """The result as it is now."""
        return [self._query.shown(each) for each in self._members.values()]

    def write(self, operation: Operation, identity: Any, document: Any) -> list[Event]:
        """Take one write; ``document`` is None for a deletion."""
        key = order_of(identity)
        was = self._members.get(key)
        shown = self._query.shown
        if document is not None and self._query.matches(document):
            self._members[key] = document
            return [Event("add" if was is None else "change", operation, shown(document))]
        if was is None:
            return []
        del self._members[key]
        return [Event("remove", operation, shown(was if document is None else document))]


class _OrderedResult:
    """A result with an order, and with an offset and a limit perhaps."""

    def __init__(self, query: Query, refill: Refill, reserve: int) -> None:
        self._query = query
        self._refill = refill
        self._most = None if query.end is None else query.end + reserve
        self._complete = True
        """Whether nothing that matches stands behind what is held."""
        self._places: list[Place] = []
        self._held: list[Any] = []
        self._at: dict[Any, Place] = {}
        """Where each held document stands, by its identity."""

    def begin(self, documents: Iterable[Any]) -> list[Event]:
        """Begin with the documents that there are; return the first result as events."""
        matches, place = self._query.matches, self._query.place
        found = [(place(each), each) for each in documents if matches(each)]
        self._hold(sorted(found, key=itemgetter(0)))
        shown = self._query.shown
        return [
            Event("add", "none", shown(each), index, initial=True)
            for index, each in enumerate(self._window())
        ]

    @property
    def documents(self) -> list[Any]:
        """The result as it is now."""
        return [self._query.shown(each) for each in self._window()]

    def write(self, operation: Operation, identity: Any, document: Any) -> list[Event]:
        """Take one write; ``document`` is None for a deletion."""
        key = order_of(identity)
        matches = document is not None and self._query.matches(document)
        known = key in self._at
        if not known and not matches:
            return []
        before = {order_of(each[IDENTITY]): each for each in self._window()}
        stood = self._index(key)
        if known:
            self._drop(key)
        if matches:
            self._insert(key, document)
        self._fill()
        after = self._window()
        return self._events(key, operation, document, before, after, stood)

    def _events(  # noqa: PLR0917 - all that is known of one write
        self,
        key: Any,
        operation: Operation,
        document: Any,
        before: dict[Any, Any],
        after: Sequence[Any],
        stood: int | None,
    ) -> list[Event]:
        shown = self._query.shown
        now = {order_of(each[IDENTITY]): index for index, each in enumerate(after)}
        events = []
        for other, was in before.items():
            if other not in now:
                left = was if other != key or document is None else document
                events.append(Event("remove", operation if other == key else "none", shown(left)))
        for other, index in now.items():
            each = after[index]
            if other not in before:
                how: Operation = operation if other == key else "none"
                events.append(Event("add", how, shown(each), index))
            elif other == key:
                match: Match = "change" if index == stood else "changeIndex"
                events.append(Event(match, operation, shown(each), index))
        return events

    def _window(self) -> list[Any]:
        return self._held[self._query.offset : self._query.end]

    def _index(self, key: Any) -> int | None:
        """Return where an object stands in the result; None: it is not in it."""
        if (place := self._at.get(key)) is None:
            return None
        return bisect_left(self._places, place) - self._query.offset

    def _hold(self, ordered: Sequence[tuple[Place, Any]]) -> None:
        """Hold the first documents of an order."""
        kept = ordered if self._most is None else ordered[: self._most]
        self._complete = len(kept) == len(ordered)
        self._places = [place for place, _ in kept]
        self._held = [document for _, document in kept]
        self._at = {order_of(each[IDENTITY]): place for place, each in kept}

    def _drop(self, key: Any) -> None:
        index = bisect_left(self._places, self._at.pop(key))
        del self._places[index], self._held[index]

    def _insert(self, key: Any, document: Any) -> None:
        place = self._query.place(document)
        index = bisect_left(self._places, place)
        if index == len(self._places) and not self._complete:
            return  # it stands behind what is held
        self._places.insert(index, place)
        self._held.insert(index, document)
        self._at[key] = place
        if self._most is not None and len(self._held) > self._most:
            self._at.pop(order_of(self._held.pop()[IDENTITY]))
            self._places.pop()
            self._complete = False

    def _fill(self) -> None:
        """Fetch more where the reserve is empty and the table may have some."""
        if self._complete or self._most is None or len(self._held) >= (self._query.end or 0):
            return
        found = list(self._refill(self._most + 1))
        self._hold([(self._query.place(each), each) for each in found])


LiveResult = _SetResult | _OrderedResult | GroupedResult
"""A result that takes writes."""


def live_result(query: Query, *, refill: Refill, reserve: int = RESERVE) -> LiveResult:
    """Return the result of a query, which takes one write after the other.

    ``refill`` reads the table as it is after the write that is being taken.
    """
    if query.grouping is not None:
        return GroupedResult(query, query.grouping)
    return _OrderedResult(query, refill, reserve) if query.ordered else _SetResult(query)
