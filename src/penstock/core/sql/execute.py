"""Runs a plan: rows of its relations in, rows of the answer out, within a budget.

What has to be held is held in memory: the groups, the rows of the second relation of a join, and
rows that are to be ordered. Everything else flows through.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from penstock.core.expression import Expression, compile_predicate, compile_row
from penstock.core.expression.tree import Node
from penstock.core.sql.budget import Budget, weight
from penstock.core.sql.grouping import Groups
from penstock.core.sql.keys import hashable, ordered
from penstock.core.sql.plan import Ordering, Plan, PlannedJoin

__all__ = ["Executor"]

Row = tuple[Any, ...]


class Pair:
    """A joined row: one of each relation; the second may be missing."""

    __slots__ = ("l", "r")

    def __init__(self, left: Any, right: Any) -> None:
        self.l = left
        self.r = right


class Executor:
    """A plan, compiled once; it can be run many times, each with rows and a budget of its own."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._make = partial(_row, plan)
        self._kept = [_condition(plan, reading.keep) for reading in plan.readings]
        self._where = _condition(plan, plan.where)
        self._having = _condition(plan, plan.having)
        self._columns = [self._make(column.node) for column in plan.columns]
        self._order = [self._make(each.node) for each in plan.order]
        self._join = _Join(plan, plan.join) if plan.join else None
        self._groups = None if plan.groups is None else Groups(plan.groups, plan.totals, self._make)

    def run(self, relations: Sequence[Iterable[Any]], budget: Budget) -> Iterator[Row]:
        """Yield the rows of the answer, values in the order of the columns.

        ``relations`` are the rows of what the plan reads: objects with an attribute for each
        column, each key at most once. Raises QueryError where the budget is spent.
        """
        plan = self.plan
        found = [
            _only(kept, budget.timed(rows))
            for kept, rows in zip(self._kept, relations, strict=True)
        ]
        rows = found[0] if self._join is None else self._join.rows(found[0], found[1], budget)
        rows = _only(self._where, rows)
        if self._groups is not None:
            rows = _only(self._having, self._groups.rows(rows, budget))
        answer = self._answer(rows, budget)
        end = None if plan.limit is None else plan.offset + plan.limit
        return islice(answer, plan.offset, end)

    def _answer(self, rows: Iterator[Any], budget: Budget) -> Iterator[Row]:
        """Yield the rows in their order, each once where only different ones are wanted."""
        plan = self.plan
        if not plan.order:
            made = (self._columns_of(row) for row in rows)
            yield from self._different(made, budget) if plan.distinct else made
            return
        made_with: Iterator[tuple[Row, list[Any]]] = (
            (self._columns_of(row), [key(row) for key in self._order]) for row in rows
        )
        if plan.distinct:
            made_with = _different_with(made_with, budget)
        most = None if plan.limit is None else plan.offset + plan.limit
        yield from _sorted(made_with, plan.order, most, budget)

    def _columns_of(self, row: Any) -> Row:
        return tuple([column(row) for column in self._columns])

    def _different(self, rows: Iterator[Row], budget: Budget) -> Iterator[Row]:
        for row, _ in _different_with(((row, []) for row in rows), budget):
            yield row


class _Join:
    """The rows of two relations that go together: the second one is held, the first flows."""

    def __init__(self, plan: Plan, join: PlannedJoin) -> None:
        self._left = [_row(plan, node) for node in join.left]
        self._right = [_row(plan, node) for node in join.right]
        self._residual = _condition(plan, join.residual)
        self._outer = join.kind == "left"

    def rows(self, left: Iterator[Any], right: Iterator[Any], budget: Budget) -> Iterator[Pair]:
        """Yield joined rows, in the order of the first relation."""
        held: dict[Any, list[Any]] = {}
        for row in right:
            key = _key(self._right, row)
            if key is not None:
                budget.spend(weight(key) + _ROW_BYTES)
                held.setdefault(key, []).append(row)
        residual = self._residual
        for one in left:
            key = _key(self._left, one)
            partnered = False
            for other in budget.timed(held.get(key, ())) if key is not None else ():
                pair = Pair(one, other)
                if residual is None or residual(pair):
                    partnered = True
                    yield pair
            if self._outer and not partnered:
                yield Pair(one, None)


_ROW_BYTES = 400
"""What a row that is held costs, about."""


def _key(values: list[Callable[[Any], Any]], row: Any) -> Row | None:
    found = tuple([hashable(value(row)) for value in values])
    return None if None in found else found


def _only(condition: Callable[[Any], bool] | None, rows: Iterator[Any]) -> Iterator[Any]:
    return rows if condition is None else filter(condition, rows)


def _different_with(
    rows: Iterator[tuple[Row, list[Any]]], budget: Budget
) -> Iterator[tuple[Row, list[Any]]]:
    seen: set[Row] = set()
    for row, keys in rows:
        told = tuple(map(hashable, row))
        if told not in seen:
            budget.spend(weight(told))
            seen.add(told)
            yield row, keys


def _sorted(
    rows: Iterator[tuple[Row, list[Any]]],
    order: Sequence[Ordering],
    most: int | None,
    budget: Budget,
) -> Iterator[Row]:
    """Yield rows in order; with a limit, no more of them are held than it takes."""
    key = ordered([(each.descending, each.nulls_first) for each in order])

    def counted() -> Iterator[tuple[Row, list[Any]]]:
        for row in rows:
            budget.spend(weight(row[0]) + weight(row[1]))
            yield row

    if most is not None and most <= _MOST_HEAPED:
        budget.spend(most * _ROW_BYTES)
        found = heapq.nsmallest(most, rows, key=lambda row: key(row[1]))
    else:
        found = sorted(counted(), key=lambda row: key(row[1]))
    for row, _ in found:
        yield row


_MOST_HEAPED = 10_000


def _row(plan: Plan, node: Node) -> Callable[[Any], Any]:
    return compile_row(Expression(node, plan.text, plan.readings[0].schema))


def _condition(plan: Plan, node: Node | None) -> Callable[[Any], bool] | None:
    if node is None:
        return None
    return compile_predicate(Expression(node, plan.text, plan.readings[0].schema))
