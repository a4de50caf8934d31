"""Which of many queries a document may match, without asking each of them.

For each query one condition is chosen that a matching document must fulfil: an equality before one
of several values, that before a range. A document meets the queries whose condition it fulfils,
and those for which there is none. The whole filter is still to be asked.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.live.filter import Condition, Joined, Node
from penstock.core.live.paths import any_value, read_path
from penstock.core.live.ranges import Interval, Intervals
from penstock.core.live.values import ARRAY, MISSING, NULL, OBJECT, Order, kind_of, order_of

__all__ = ["MOST_VALUES", "QueryIndex"]

MOST_VALUES = 100
"""A condition with more values than that is not indexed by them."""

_LOWS, _HIGHS = {"$gt", "$gte"}, {"$lt", "$lte"}


@dataclass(frozen=True, slots=True)
class _Key:
    """A condition that a query can be found by."""

    path: str
    values: tuple[Order, ...] = ()
    kind: int = 0
    low: Order | None = None
    high: Order | None = None

    @property
    def cost(self) -> int:
        """How many documents it lets through, as a guess: one value, several, half of a range."""
        if self.values:
            return len(self.values)
        ends = (self.low is not None) + (self.high is not None)
        return MOST_VALUES * (4 - ends)


@dataclass(slots=True)
class _Path:
    """The conditions on one path."""

    collect: Callable[[Any], list[Any]]
    equal: dict[Order, set[Hashable]] = field(default_factory=dict)
    ranges: dict[int, Intervals] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether no query is found by this path any more."""
        return not self.equal and not any(map(len, self.ranges.values()))


class QueryIndex:
    """Queries by their names; asks a document for its candidates."""

    def __init__(self) -> None:
        self._paths: dict[str, _Path] = {}
        self._keys: dict[Hashable, tuple[_Key, ...]] = {}
        self._others: set[Hashable] = set()
        """Queries that every document has to be compared with."""

    def __len__(self) -> int:
        """Return how many queries there are."""
        return len(self._keys)

    @property
    def unindexed(self) -> int:
        """How many queries every document is compared with."""
        return len(self._others)

    def add(self, name: Hashable, node: Node) -> None:
        """Add a query under a name that is not there yet."""
        keys = self._keys[name] = _keys_of(node) or ()
        if not keys:
            self._others.add(name)
        for number, key in enumerate(keys):
            path = self._paths.get(key.path)
            if path is None:
                path = self._paths[key.path] = _Path(_collector(key.path))
            for value in key.values:
                path.equal.setdefault(value, set()).add(name)
            if not key.values:
                ranges = path.ranges.setdefault(key.kind, Intervals())
                ranges.add(Interval(key.low, key.high, (name, number)))

    def remove(self, name: Hashable) -> None:
        """Remove a query that may be there."""
        self._others.discard(name)
        for number, key in enumerate(self._keys.pop(name, ())):
            path = self._paths.get(key.path)
            if path is None:
                continue  # it went with a former key of this query
            for value in key.values:
                names = path.equal.get(value, set())
                names.discard(name)
                if not names:
                    path.equal.pop(value, None)
            if not key.values:
                path.ranges[key.kind].remove((name, number))
            if path.empty:
                del self._paths[key.path]

    def candidates(self, document: Any) -> set[Hashable]:
        """Return the queries that a document may match; it matches no other."""
        found = set(self._others)
        for path in self._paths.values():
            values = path.collect(document)
            for value in values:
                order = (NULL,) if value is MISSING else order_of(value)
                if (equal := path.equal.get(order)) is not None:
                    found |= equal
                if (ranges := path.ranges.get(order[0])) is not None:
                    # One element of an array may fulfil one end, and another one the other.
                    names = ranges.names() if len(values) > 1 else ranges.holding(order)
                    found.update(name for name, _ in names)
        return found


def _keys_of(node: Node) -> tuple[_Key, ...] | None:
    """Return conditions of which a match fulfils one; None: there are none to go by."""
    if isinstance(node, Condition):
        key = _key_of(node)
        return None if key is None else (key,)
    if node.how == "any":
        return _of_choices(node.nodes)
    if node.how == "none":
        return None
    choices = [keys for keys in _of_all(node) if keys]
    return min(choices, key=lambda keys: sum(key.cost for key in keys), default=None)


def _of_choices(nodes: Iterable[Node]) -> tuple[_Key, ...] | None:
    found: list[_Key] = []
    for each in nodes:
        keys = _keys_of(each)
        if not keys:
            return None
        found += keys
    return tuple(found) if len(found) <= MOST_VALUES else None


def _of_all(node: Joined) -> Iterator[tuple[_Key, ...] | None]:
    """Return what each part of a conjunction gives; ranges of one path and kind are one."""
    ranges: dict[tuple[str, int], _Key] = {}
    for each in node.nodes:
        keys = _keys_of(each)
        if keys and len(keys) == 1 and not keys[0].values:
            at = (keys[0].path, keys[0].kind)
            ranges[at] = _both(ranges[at], keys[0]) if at in ranges else keys[0]
        else:
            yield keys
    yield from ((key,) for key in ranges.values())


def _both(one: _Key, other: _Key) -> _Key:
    """Return what lies in two ranges."""
    lows = [low for low in (one.low, other.low) if low is not None]
    highs = [high for high in (one.high, other.high) if high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    return replace(one, low=low, high=high)


def _key_of(condition: Condition) -> _Key | None:
    operator, operand = condition.operator, condition.operand
    if not condition.path:
        return None
    if operator == "$eq":
        return _Key(condition.path, values=(order_of(operand),))
    if operator == "$in":
        return _key_of_values(condition.path, operand)
    if operator not in _LOWS | _HIGHS or operand is None:
        return None
    order, kind = order_of(operand), kind_of(operand)
    if kind in (OBJECT, ARRAY):
        return None
    low, high = (order, None) if operator in _LOWS else (None, order)
    return _Key(condition.path, kind=kind, low=low, high=high)


def _key_of_values(path: str, operands: list[Any]) -> _Key | None:
    if not 0 < len(operands) <= MOST_VALUES:
        return None
    return _Key(path, values=tuple({order_of(each) for each in operands}))


def _collector(path: str) -> Callable[[Any], list[Any]]:
    """Return what gives all values that a path leads to."""
    parts = read_path(path)

    def collect(document: Any) -> list[Any]:
        found: list[Any] = []
        any_value(parts, found.append, into=True)(document)  # type: ignore[arg-type]
        return found

    return collect
