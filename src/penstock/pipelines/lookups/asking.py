"""Where a plan looks tables up, and by which values: read from its joins.

A join asks a table for the rows whose columns equal values of its other side. Only rows that may
match have to be there, because a join of a stream with a table never gives rows of the table alone.
What else is done with a table (a join by a range, an aggregate of it) needs all its rows.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from penstock.pipelines.lookups.hashes import HASHED
from penstock.pipelines.program.rewriting import PlanTemplate, analyzed, nodes
from penstock.pipelines.program.stateful import is_input, several

__all__ = ["Asking", "askings", "is_steady"]

_TABLE_AT_RIGHT = ("INNER", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI")
_TABLE_AT_LEFT = ("INNER", "RIGHT OUTER")
_ROW_BY_ROW = ("Filter", "ResolvedHint", "SubqueryAlias")
_CONSTANT = ("LocalRelation", "OneRowRelation", "Range")
_MOMENTS = ("CurrentTimestamp", "CurrentDate", "CurrentTime", "LocalTimestamp", "Now")


@dataclass(frozen=True, slots=True)
class Asking:
    """One place in a plan where a table is looked up."""

    number: int
    """Of the input, counted from the top of the plan."""
    table: str
    columns: tuple[str, ...]
    values: tuple[Any, ...]
    """Spark's expressions over the other side, one for each of the columns."""
    other: PlanTemplate
    """The plan of the other side."""
    needs: frozenset[int] = frozenset()
    """The numbers of other tables whose rows the other side is made of."""


def askings(frame: DataFrame, inputs: Sequence[str], tables: Collection[str]) -> list[Asking]:
    """Return where these tables are looked up by values, in an order in which it can be done.

    A table that is needed whole at a place is not among them, nor is one that is looked up by what
    comes out of such a place.
    """
    walk = _Walk(inputs, tables)
    walk.take(analyzed(frame))
    found: list[Asking] = []
    for each in walk.found:
        # Joins are met from the inputs up: what one needs has been met before.
        if each.needs <= {known.number for known in found}:
            found.append(each)
    return found


def is_steady(frame: DataFrame, inputs: Sequence[str], *, beside: Collection[str]) -> bool:
    """Return whether a batch that is computed again from the same rows gives the same.

    ``beside`` names the inputs that may be others then.
    """
    plan = analyzed(frame)
    if not plan.deterministic():
        return False
    for node in nodes(plan, inputs):
        if is_input(node, inputs):
            if node.alias() in beside:
                return False
        elif not several(node.children()) and node.nodeName() not in _CONSTANT:
            return False
        if any(_tells_time(each) for each in several(node.expressions())):
            return False
    return True


@dataclass(slots=True)
class _Walk:
    """Goes through a plan from the top down; ``found`` has the joins from the inputs up."""

    inputs: Sequence[str]
    tables: Collection[str]
    found: list[Asking] = field(default_factory=list)
    _count: int = 0

    def take(self, node: Any) -> list[tuple[int, str]]:
        """Return the inputs below a node, with their numbers."""
        if is_input(node, self.inputs):
            number, self._count = self._count, self._count + 1
            return [(number, node.alias())]
        starts, below = [], []
        for child in several(node.children()):
            starts.append(self._count)
            below.append(self.take(child))
        if node.nodeName() == "Join":
            self._look(node, starts, below)
        return [each for one in below for each in one]

    def _look(self, node: Any, starts: list[int], below: list[list[tuple[int, str]]]) -> None:
        kind = node.joinType().sql().upper()
        for table, other, kinds in ((1, 0, _TABLE_AT_RIGHT), (0, 1, _TABLE_AT_LEFT)):
            if len(below[table]) != 1 or below[table][0][1] not in self.tables or kind not in kinds:
                continue
            sides = node.left(), node.right()
            pairs = dict(self._compared(node, sides[table], sides[other]))
            if pairs:
                number, name = below[table][0]
                needs = {each for each, alias in below[other] if alias in self.tables}
                columns = tuple(sorted(pairs))
                values = tuple(pairs[each] for each in columns)
                template = PlanTemplate(sides[other], self.inputs, first=starts[other])
                asking = Asking(number, name, columns, values, template, frozenset(needs))
                self.found.append(asking)
                return

    def _compared(self, node: Any, table: Any, other: Any) -> list[tuple[str, Any]]:
        """Return the columns of the table that must equal something, and what."""
        if node.condition().isEmpty():
            return []
        found = []
        for equality in _equalities(node.condition().get()):
            for one, value in (
                (equality.left(), equality.right()),
                (equality.right(), equality.left()),
            ):
                if _class(one) != "AttributeReference" or not _is_made_of(value, other):
                    continue
                if one.dataType().simpleString() not in HASHED:
                    continue
                if (column := self._column(table, one)) is not None:
                    found.append((column, value))
        return found

    def _column(self, node: Any, attribute: Any) -> str | None:
        """Return which column of the table an attribute is, if nothing is done to its rows."""
        wanted = attribute.exprId().id()
        while not is_input(node, self.inputs):
            if node.nodeName() == "Project":
                named = (
                    each for each in several(node.projectList()) if each.exprId().id() == wanted
                )
                source = next(named, None)
                if source is not None and _class(source) == "Alias":
                    source = source.child()
                if source is None or _class(source) != "AttributeReference":
                    return None
                wanted = source.exprId().id()
            elif node.nodeName() not in _ROW_BY_ROW:
                return None
            (node,) = several(node.children())
        columns = (each for each in several(node.output()) if each.exprId().id() == wanted)
        column = next(columns, None)
        return None if column is None else str(column.name())


def _equalities(condition: Any) -> list[Any]:
    if _class(condition) == "And":
        return [*_equalities(condition.left()), *_equalities(condition.right())]
    return [condition] if _class(condition) == "EqualTo" else []


def _is_made_of(value: Any, plan: Any) -> bool:
    """Whether an expression has columns, and all of them are a plan's."""
    used = {each.exprId().id() for each in _attributes(value)}
    there = {each.exprId().id() for each in several(plan.output())}
    return bool(used) and used <= there and value.deterministic()


def _attributes(expression: Any) -> list[Any]:
    if _class(expression) == "AttributeReference":
        return [expression]
    return [found for child in several(expression.children()) for found in _attributes(child)]


def _tells_time(expression: Any) -> bool:
    if _class(expression) in _MOMENTS:
        return True
    return any(_tells_time(each) for each in several(expression.children()))


def _class(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())
