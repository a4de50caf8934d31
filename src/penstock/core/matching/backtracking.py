"""Which patterns an engine that goes back runs in one pass over the text.

Java's engine, and Python's own, try one way after the other. How long that takes is told by the
pairs of places in the pattern at which two ways through the same text can be. If such ways never
meet again, and one of the two always ends after a few characters, a wrong way costs little and a
text is gone through once. If not, ways multiply, or go side by side to the end of the text.

A pattern that may begin anywhere is tried at every place of the text, so its matches must be short.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from penstock.core.matching.pattern import (
    Characters,
    Either,
    Ranges,
    Repeat,
    Sequence,
    Start,
    Tree,
    read_pattern,
)

__all__ = ["runs_straight"]

_MAX_PLACES = 300
"""How many characters a pattern may have, repeats written out; each costs time on every text."""
_MAX_FLOATING = 100
"""The same for a pattern that may begin at any place of a text."""
_MAX_PAIRS = 5_000
"""How many pairs of places are looked at before a pattern is found too involved."""


_Pair = tuple[int, int]
_Span = tuple[set[int], set[int], bool]
"""First places, last places, and whether there may be none."""


@lru_cache(maxsize=256)
def runs_straight(pattern: str) -> bool:
    """Whether Java's engine needs time in proportion to a text, and no more, for a good pattern."""
    tree = read_pattern(pattern)
    anchored = _begins_at_start(tree)
    if not _is_usual(tree, anchored=anchored, first=True):
        return False
    places = _Places()
    try:
        first, _, _ = places.walk(tree)
        return (anchored or len(places.ranges) <= _MAX_FLOATING) and places.part_soon(first)
    except OverflowError:
        return False


def _begins_at_start(tree: Tree) -> bool:
    match tree:
        case Start():
            return True
        case Sequence((first, *_)):
            return _begins_at_start(first)
        case Either(branches):
            return all(map(_begins_at_start, branches))
    return False


def _is_usual(tree: Tree, *, anchored: bool, first: bool) -> bool:
    """Whether ^ stands at the beginning only, and what has no end is a character and anchored.

    Java takes a level of its stack for each turn of a group.
    """
    match tree:
        case Start():
            return first
        case Sequence(items):
            return all(
                _is_usual(item, anchored=anchored, first=first and at == 0)
                for at, item in enumerate(items)
            )
        case Either(branches):
            return all(_is_usual(each, anchored=anchored, first=first) for each in branches)
        case Repeat(item, _, None):
            return anchored and isinstance(item, Characters)
        case Repeat(item):
            return _is_usual(item, anchored=anchored, first=False)
    return True


class _Places:
    """The characters of a pattern, repeats written out, and which may follow which."""

    def __init__(self) -> None:
        self.ranges: list[Ranges] = []
        self.following: list[set[int]] = []

    def part_soon(self, first: set[int]) -> bool:
        """Whether of two ways through the same text one always ends soon, and they never meet."""
        known: dict[_Pair, bool] = {}
        for start in {
            pair for each in (first, *self.following) for pair in self._pairs(each, each)
        }:
            # An entry of False is on the way that is being gone: to come back to it is a circle.
            way = [(start, iter(self._after(start)))] if start not in known else []
            known.setdefault(start, False)
            while way:
                pair, rest = way[-1]
                following = next(rest, None)
                if following is None:
                    known[pair] = True
                    way.pop()
                elif following[0] == following[1] or known.get(following) is False:
                    return False
                elif following not in known:
                    if len(known) > _MAX_PAIRS:
                        raise OverflowError
                    known[following] = False
                    way.append((following, iter(self._after(following))))
        return True

    def _after(self, pair: _Pair) -> set[_Pair]:
        one, two = (self.following[place] for place in pair)
        met = {(place, place) for place in one & two}
        return met or self._pairs(one, two)

    def _pairs(self, ones: set[int], twos: set[int]) -> set[_Pair]:
        """Return the pairs of two different places that the same character fits."""
        return {
            (min(one, two), max(one, two))
            for one in ones
            for two in twos
            if one != two and _share(self.ranges[one], self.ranges[two])
        }

    def walk(self, tree: Tree) -> _Span:
        """Return the first places of a tree, its last, and whether it may take no character."""
        match tree:
            case Characters(ranges):
                return self._place(ranges)
            case Sequence(items):
                return self._joined(items)
            case Either(branches):
                found = [self.walk(branch) for branch in branches]
                firsts = set().union(*(begins for begins, _, _ in found))
                lasts = set().union(*(ends for _, ends, _ in found))
                empties = sum(empty for _, _, empty in found)
                if empties > 1:
                    # Two ways that take no character: with each such group there are twice as many.
                    raise OverflowError
                return firsts, lasts, empties == 1
            case Repeat(item, low, high):
                return self._repeated(item, low, high)
        return set(), set(), True

    def _repeated(self, item: Tree, low: int, high: int | None) -> _Span:
        """Write a repeat out: each turn follows the one before it, the least ones must come."""
        turns = [self.walk(item) for _ in range(max(low, 1) if high is None else high)]
        if any(empty for _, _, empty in turns):
            raise OverflowError
        for (_, ends, _), (begins, _, _) in pairwise(turns):
            self._follow(ends, begins)
        if high is None:
            self._follow(turns[-1][1], turns[-1][0])
        lasts = set().union(*(ends for _, ends, _ in turns[max(low, 1) - 1 :]))
        return (turns[0][0] if turns else set()), lasts, low == 0

    def _follow(self, ends: set[int], begins: set[int]) -> None:
        for place in ends:
            self.following[place] |= begins

    def _place(self, ranges: Ranges) -> _Span:
        if len(self.ranges) >= _MAX_PLACES:
            raise OverflowError
        place = len(self.ranges)
        self.ranges.append(ranges)
        self.following.append(set())
        return {place}, {place}, False

    def _joined(self, items: Iterable[Tree]) -> _Span:
        first: set[int] = set()
        last: set[int] = set()
        empty = True
        for item in items:
            begins, ends, skipped = self.walk(item)
            self._follow(last, begins)
            if empty:
                first |= begins
            last = last | ends if skipped else ends
            empty = empty and skipped
        return first, last, empty


def _share(one: Ranges, two: Ranges) -> bool:
    return any(low <= top and bottom <= high for low, high in one for bottom, top in two)
