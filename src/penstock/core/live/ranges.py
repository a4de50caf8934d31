"""Intervals of a kind of value, and those of them that a value is in.

An interval tree that is built anew when much has changed; what was added since is looked through
one by one, and what was removed is passed over.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Interval", "Intervals"]

_FEWEST_NEW = 64
"""So many intervals may wait outside the tree, however small it is."""
_LEAF = 8
"""So many intervals are looked through rather than divided further."""


@dataclass(frozen=True, slots=True)
class Interval:
    """From a value to another, both included; None: without end. ``name`` is whose it is."""

    low: Any
    high: Any
    name: tuple[Hashable, int]

    def holds(self, value: Any) -> bool:
        """Return whether a value is in it."""
        above = self.low is None or self.low <= value
        return above and (self.high is None or value <= self.high)


class Intervals:
    """Intervals that come and go. What a value is in is found without looking at all of them."""

    def __init__(self) -> None:
        self._all: dict[tuple[Hashable, int], Interval] = {}
        self._new: dict[tuple[Hashable, int], Interval] = {}
        self._tree: _Node | None = None

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._all)

    def add(self, interval: Interval) -> None:
        """Add one, in place of that of the same name."""
        self._all[interval.name] = self._new[interval.name] = interval

    def remove(self, name: tuple[Hashable, int]) -> None:
        """Remove one that may be there."""
        self._all.pop(name, None)
        self._new.pop(name, None)

    def names(self) -> Iterable[tuple[Hashable, int]]:
        """Return the names of all."""
        return self._all

    def holding(self, value: Any) -> Iterator[tuple[Hashable, int]]:
        """Return the names of those that hold a value."""
        if len(self._new) > max(_FEWEST_NEW, len(self._all) // 8):
            self._tree = _node(list(self._all.values()))
            self._new = {}
        for interval in self._new.values():
            if interval.holds(value):
                yield interval.name
        if self._tree is not None:
            for interval in self._tree.holding(value):
                # It may have been removed, or replaced by another one of its name.
                if self._all.get(interval.name) is interval and interval.name not in self._new:
                    yield interval.name


@dataclass(slots=True)
class _Node:
    """The intervals around a value, in both orders, and those to the left and to the right."""

    center: Any
    by_low: list[Interval]
    by_high: list[Interval]
    left: _Node | None
    right: _Node | None

    def holding(self, value: Any) -> Iterator[Interval]:
        """Return those that hold a value."""
        node: _Node | None = self
        while node is not None:
            if node.center is None:
                yield from (each for each in node.by_low if each.holds(value))
                return
            if value < node.center:
                for each in node.by_low:
                    if each.low is not None and each.low > value:
                        break
                    yield each
                node = node.left
            else:
                for each in node.by_high:
                    if each.high is not None and each.high < value:
                        break
                    yield each
                node = node.right


def _node(intervals: list[Interval]) -> _Node | None:
    if not intervals:
        return None
    ends = sorted(_ends(intervals))
    if len(intervals) <= _LEAF or not ends:
        return _Node(None, intervals, [], None, None)
    center = ends[len(ends) // 2]
    left = [each for each in intervals if each.high is not None and each.high < center]
    right = [each for each in intervals if each.low is not None and each.low > center]
    around = [each for each in intervals if each.holds(center)]
    without_low = [each for each in around if each.low is None]
    without_high = [each for each in around if each.high is None]
    lows = sorted((each for each in around if each.low is not None), key=lambda each: each.low)
    highs = sorted(
        (each for each in around if each.high is not None), key=lambda each: each.high, reverse=True
    )
    return _Node(center, without_low + lows, without_high + highs, _node(left), _node(right))


def _ends(intervals: Iterable[Interval]) -> Iterator[Any]:
    for each in intervals:
        if each.low is not None:
            yield each.low
        if each.high is not None:
            yield each.high
