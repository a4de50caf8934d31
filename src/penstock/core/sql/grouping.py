"""Rows to groups: one for each set of values that rows are grouped by, with its aggregates."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from penstock.core.aggregates.aggregate import form_of
from penstock.core.aggregates.collect import Collect
from penstock.core.aggregates.distinct import Distinct
from penstock.core.expression.tree import Node
from penstock.core.expression.values.plainvalues import from_plain, to_plain
from penstock.core.sql.budget import Budget, weight
from penstock.core.sql.keys import hashable
from penstock.core.sql.plan import Totalled

__all__ = ["Groups"]

_PRESENT = True
_TOTAL_BYTES = 200
"""What an aggregate of a group costs, about."""


class Groups:
    """Compiled once: rows in, groups out, as objects with ``g0``... and ``a0``..."""

    def __init__(
        self,
        groups: Sequence[Node],
        totals: Sequence[Totalled],
        make: Callable[[Node], Callable[[Any], Any]],
    ) -> None:
        self._keys = [make(node) for node in groups]
        self._totals = [_Total(total, make) for total in totals]

    def rows(self, rows: Iterable[Any], budget: Budget) -> Iterator[SimpleNamespace]:
        """Yield the groups; without anything to group by there is one, even of no rows."""
        held: dict[Any, tuple[list[Any], list[Any]]] = {}
        if not self._keys:
            held[()] = ([], [total.zero() for total in self._totals])
        for row in rows:
            values = [key(row) for key in self._keys]
            told = tuple(map(hashable, values))
            found = held.get(told)
            if found is None:
                budget.spend(weight(told) + _TOTAL_BYTES * (1 + len(self._totals)))
                found = held[told] = (values, [total.zero() for total in self._totals])
            totals = found[1]
            for at, total in enumerate(self._totals):
                totals[at] = total.add(totals[at], row, budget)
        for values, totals in held.values():
            named = {f"g{at}": value for at, value in enumerate(values)}
            for at, total in enumerate(self._totals):
                named[f"a{at}"] = total.result(totals[at])
            yield SimpleNamespace(**named)


class _Total:
    """One aggregate of each group."""

    def __init__(self, total: Totalled, make: Callable[[Node], Callable[[Any], Any]]) -> None:
        self._combiner = total.combiner
        self.zero = total.combiner.zero
        self._value = None if total.value is None else make(total.value)
        presence = form_of(total.combiner).takes == "presence"
        self._plain = _present if presence else to_plain(total.takes)
        self._back = from_plain(total.gives)
        self._grows = isinstance(total.combiner, Collect | Distinct)

    def add(self, held: Any, row: Any, budget: Budget) -> Any:
        """Take in a row."""
        if self._value is None:
            return self._combiner.add(held, _PRESENT)
        value = self._plain(self._value(row))
        if not self._grows:
            return self._combiner.add(held, value)
        before = len(held)
        held = self._combiner.add(held, value)
        if len(held) > before:
            budget.spend(weight((value,)))
        return held

    def result(self, held: Any) -> Any:
        """Return the result, as a row holds it."""
        return self._back(self._combiner.result(held))


def _present(value: Any) -> Any:
    return None if value is None else _PRESENT
