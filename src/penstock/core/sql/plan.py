"""What a query is to do, as a value: everything in it is checked, and typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.expression.tree import Node
from penstock.core.expression.types import Type
from penstock.core.panes.combiner import Combiner
from penstock.core.records.schema import FieldType, Schema
from penstock.core.sql.access import Access
from penstock.core.sql.syntax import JoinKind

__all__ = ["LEFT", "RIGHT", "Column", "Ordering", "Plan", "PlannedJoin", "Reading", "Totalled"]

LEFT, RIGHT = "l", "r"
"""The two sides of a joined row, as expressions over it name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A relation that a query reads: its name, and what it needs of it."""

    name: str
    schema: Schema
    access: Access
    keep: Node | None = None
    """A condition over its rows alone; None: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJoin:
    """How rows of two relations go together: by equal values, and perhaps a further condition."""

    kind: JoinKind
    left: tuple[Node, ...]
    """Over rows of the first relation; null goes with nothing."""
    right: tuple[Node, ...]
    """Over rows of the second, each of the type of its partner."""
    residual: Node | None
    """Over joined rows; of an inner join it is part of the query's condition."""

    def alone(self) -> PlannedJoin:
        """Return the join without its further condition."""
        return replace(self, residual=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totalled:
    """One aggregate: its combiner, and the values that go in; None: each row counts."""

    combiner: Combiner[Any, Any, Any]
    value: Node | None
    takes: FieldType
    gives: FieldType


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of the answer."""

    name: str
    node: Node

    @property
    def type(self) -> Type:
        """Return the type of its values."""
        return self.node.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """One thing that rows are ordered by."""

    node: Node
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One query, ready to run.

    Without groups (``groups`` is None) columns are over the rows that were read; else over groups,
    whose fields are ``g0``, ``g1``... for what they are grouped by and ``a0``, ``a1``... for
    aggregates.
    """

    text: str
    readings: tuple[Reading, ...]
    """One, or two that are joined."""
    join: PlannedJoin | None
    where: Node | None
    groups: tuple[Node, ...] | None
    totals: tuple[Totalled, ...]
    having: Node | None
    columns: tuple[Column, ...]
    distinct: bool
    order: tuple[Ordering, ...]
    limit: int | None
    offset: int
    named: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def identity(self) -> tuple[int, ...]:
        """Return which columns tell rows of the answer apart; none: only a whole row does."""
        return tuple(self.named.values())
