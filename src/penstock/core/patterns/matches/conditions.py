"""The conditions of a pattern, compiled, and what its steps have taken, record by record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from penstock.core.expression import Expression, compile_predicate, compile_row, compile_step
from penstock.core.expression.tree import Taken, walk
from penstock.core.patterns.matches.begun import Link
from penstock.core.patterns.planned import PlannedPattern
from penstock.core.records.schema import Schema
from penstock.errors import DataError

__all__ = ["Conditions", "Fold", "Values", "fold"]

Values = tuple[Any, ...]
"""What the steps have taken, as conditions ask for it."""

_INT64 = 2**63


class Conditions:
    """Which tests a record fits, as bits."""

    def __init__(self, plan: PlannedPattern) -> None:
        self._plain: list[list[tuple[int, Callable[[Any], bool]]]] = [[] for _ in plan.inputs]
        self._always = [0 for _ in plan.inputs]
        self._asking: dict[int, tuple[int, Callable[[Any, Values], bool]]] = {}
        for number, (source, condition) in enumerate(plan.tests):
            if condition is None:
                self._always[source] |= 1 << number
            elif any(isinstance(node, Taken) for node in walk(condition.root)):
                self._asking[number] = source, compile_step(condition, plan.taken, predicate=True)
            else:
                self._plain[source].append((1 << number, compile_predicate(condition)))

    def fitting(self, source: int, record: Any) -> int:
        """Return the tests that a record of an input fits, whatever was taken before."""
        bits = self._always[source]
        for bit, holds in self._plain[source]:
            if holds(record):
                bits |= bit
        return bits

    def asked(self, tests: Sequence[int], source: int, record: Any, values: Values) -> int:
        """Return which of these tests a record fits after what was taken."""
        bits = 0
        for number in tests:
            of, holds = self._asking[number]
            if of == source and holds(record, values):
                bits |= 1 << number
        return bits


class Fold:
    """Keeps up what steps have taken, as a tuple with a value for each that is asked for."""

    def __init__(self, taken: Sequence[Taken], steps: Sequence[str]) -> None:
        self.nothing: Values = tuple(
            0 if each.function in ("count", "sum") else None for each in taken
        )
        """What nothing comes to."""
        self._of_step: list[list[tuple[int, str, Callable[[Any], Any] | None]]] = [
            [
                (place, each.function, _value_of(each))
                for place, each in enumerate(taken)
                if each.step == step
            ]
            for step in steps
        ]

    def add(self, values: Values, step: int, record: Any) -> Values:
        """Return the values with one more record of a step; DataError: they cannot be computed."""
        asked = self._of_step[step]
        if not asked:
            return values
        found = list(values)
        for place, function, value_of in asked:
            value = True if value_of is None else value_of(record)
            found[place] = _ADD[function](found[place], value)
        return tuple(found)

    def of(self, path: Sequence[Link]) -> Values:
        """Return what a whole path comes to."""
        values = self.nothing
        for link in path:
            values = self.add(values, link.step, link.event.record)
        return values


def fold(taken: Sequence[Taken], plan: PlannedPattern) -> Fold:
    """Return what keeps up the values that are asked for in a pattern."""
    return Fold(taken, [taker.name for taker in plan.takers])


def _value_of(taken: Taken) -> Callable[[Any], Any] | None:
    if taken.of is None:
        return None
    nothing = Schema(name="record", fields=())
    return compile_row(Expression(taken.of, f"{taken.function}({taken.step}...)", nothing))


def _count(count: int, value: Any) -> int:
    return count if value is None else count + 1


def _sum(total: Any, value: Any) -> Any:
    if value is None:
        return total
    found = value + total if isinstance(value, Decimal) else total + value
    if isinstance(found, int) and not -_INT64 <= found < _INT64:
        raise DataError("the sum over a step has more than 64 bits", code="pattern.overflow")
    return found


def _first(first: Any, value: Any) -> Any:
    return value if first is None else first


def _last(_last: Any, value: Any) -> Any:
    return value


def _min(least: Any, value: Any) -> Any:
    return value if least is None or (value is not None and value < least) else least


def _max(most: Any, value: Any) -> Any:
    return value if most is None or (value is not None and value > most) else most


_ADD: dict[str, Callable[[Any, Any], Any]] = {
    "count": _count,
    "sum": _sum,
    "first": _first,
    "last": _last,
    "min": _min,
    "max": _max,
}
