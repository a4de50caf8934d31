"""The order of a query's result: several fields, each up or down, and ties by the identity.

A field that holds an array is sorted by its least element where the order goes up, and by its
greatest where it goes down. What is missing sorts as null, and an empty array before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import total_ordering
from itertools import product
from typing import Any

from penstock.core.live.paths import Part, read_path
from penstock.core.live.refusal import refuse
from penstock.core.live.values import MISSING, NULL, Order, order_of

__all__ = ["IDENTITY", "MOST_FIELDS", "MOST_ORDERS", "Direction", "place_of", "read_sort"]

IDENTITY = "_id"
"""The field that tells documents apart."""
MOST_FIELDS = 32
"""How many fields a result may be sorted by."""
MOST_ORDERS = 10_000
"""How many combinations of its arrays a document may be sorted by; of more, the first counts."""

_EMPTY: Order = (0,)
_NULL: Order = (NULL,)

Place = tuple[Any, ...]
"""Where a document stands: it compares as the documents are ordered."""


@dataclass(frozen=True, slots=True)
class Direction:
    """One field to sort by."""

    path: str
    down: bool = False


@total_ordering
class _Down:
    """An order that compares the other way round."""

    __slots__ = ("order",)

    def __init__(self, order: Order) -> None:
        self.order = order

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Down) and self.order == other.order

    def __lt__(self, other: _Down) -> bool:
        return other.order < self.order

    def __hash__(self) -> int:
        return hash(self.order)


def read_sort(given: Any) -> tuple[Direction, ...]:
    """Return what a result is sorted by: pairs of a path and 1 or -1."""
    pairs = given if isinstance(given, list | tuple) else None
    if pairs is None or len(pairs) > MOST_FIELDS:
        text = f"it takes a list of at most {MOST_FIELDS} pairs: [['age', -1]]"
        raise refuse(text, operator="sort", path="")
    return tuple(_direction(each) for each in pairs)


def _direction(given: Any) -> Direction:
    pair = given if isinstance(given, list | tuple) and len(given) == 2 else (None, None)  # noqa: PLR2004
    path, down = pair
    if not isinstance(path, str) or not path or path.startswith("$"):
        raise refuse(f"{given!r} is not a pair of a path and 1 or -1", operator="sort", path="")
    if isinstance(down, bool) or down not in (1, -1):
        raise refuse(f"the direction is 1 or -1, not {down!r}", operator="sort", path=path)
    return Direction(path, down=down == -1)


def place_of(directions: Sequence[Direction]) -> Callable[[Any], Place]:
    """Return what tells where a document stands; no two documents stand at one place."""
    if all(each.path != IDENTITY for each in directions):
        directions = (*directions, Direction(IDENTITY))
    paths = [read_path(each.path) for each in directions]
    downs = [each.down for each in directions]
    if all(len(path) == 1 for path in paths):
        return _flat([path[0][0] for path in paths], downs)

    def place(document: Any) -> Place:
        return min(_turned(orders, downs) for orders in _orders(document, paths))

    return place


def _flat(names: list[str], downs: list[bool]) -> Callable[[Any], Place]:
    """Return the same where all paths are names, and no two arrays have to be combined."""

    def place(document: Any) -> Place:
        found = []
        for name, down in zip(names, downs, strict=True):
            value = document.get(name)
            if type(value) is not list:
                order = order_of(value)
            else:
                order = _extreme(_of_array(value), down=down)
            found.append(_Down(order) if down else order)
        return tuple(found)

    return place


def _of_array(array: list[Any]) -> list[Order]:
    return [order_of(each) for each in array] or [_EMPTY]


def _extreme(orders: Iterable[Order], *, down: bool) -> Order:
    return max(orders) if down else min(orders)


def _turned(orders: Sequence[Order], downs: Sequence[bool]) -> Place:
    return tuple(_Down(order) if down else order for order, down in zip(orders, downs, strict=True))


def _orders(document: Any, paths: Sequence[tuple[Part, ...]]) -> list[tuple[Order, ...]]:
    """Return every combination of values that the paths lead to in one document.

    Paths into the same array meet its elements together; other arrays are combined with each
    other.
    """
    rows = [tuple(each) for each in _rows(document, paths)]
    return rows or [tuple(_NULL for _ in paths)]


def _rows(document: Any, paths: Sequence[tuple[Part, ...]]) -> list[list[Order]]:
    """Go down every path to its end or to an array, and into each array once."""
    fixed: dict[int, Order] = {}
    arrays: dict[int, tuple[list[Any], dict[int, tuple[Part, ...]]]] = {}
    for place, path in enumerate(paths):
        value, rest = _down_to_array(document, path)
        if type(value) is not list:
            fixed[place] = _NULL if value is MISSING else order_of(value)
        else:
            arrays.setdefault(id(value), (value, {}))[1][place] = rest
    found: list[list[dict[int, Order]]] = [_through(array, at) for array, at in arrays.values()]
    size = 1
    for each in found:
        size *= len(each)
    if size > MOST_ORDERS:
        found = [each[:1] for each in found]
    rows = []
    for combination in product(*found):
        orders = dict(fixed)
        for row in combination:
            orders |= row
        rows.append([orders[place] for place in range(len(paths))])
    return rows


def _down_to_array(value: Any, path: tuple[Part, ...]) -> tuple[Any, tuple[Part, ...]]:
    """Return what a path leads to, or the first array on it with the path that is left."""
    for place, (name, index) in enumerate(path):
        if type(value) is list:
            if 0 <= index < len(value):
                value = value[index]
                continue
            return value, path[place:]
        value = value.get(name, MISSING) if type(value) is dict else MISSING
    return value, ()


def _through(array: list[Any], at: dict[int, tuple[Part, ...]]) -> list[dict[int, Order]]:
    """Return the orders of each element of an array, for the paths that go into it."""
    if not array:
        return [{place: _NULL if rest else _EMPTY for place, rest in at.items()}]
    rows: list[dict[int, Order]] = []
    for element in array:
        ended = {place: order_of(element) for place, rest in at.items() if not rest}
        going_on = {place: rest for place, rest in at.items() if rest}
        deeper = _rows(element if type(element) is dict else {}, list(going_on.values()))
        rows += (ended | dict(zip(going_on, each, strict=True)) for each in deeper)
    return rows
