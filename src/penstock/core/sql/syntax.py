"""A query as it is written: untyped, each piece with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.core.expression.parsing.syntax import Syntax

__all__ = ["Item", "Join", "JoinKind", "Order", "Select", "Source"]

JoinKind = Literal["inner", "left"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A relation by its name, and what the query calls it."""

    name: str
    alias: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A second relation, and when its rows go with those of the first."""

    kind: JoinKind
    source: Source
    on: Syntax


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that is selected; without an expression all columns, of ``of`` where it says so."""

    expression: Syntax | None
    alias: str = ""
    text: str = ""
    of: str = ""
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One thing that the answer is ordered by."""

    expression: Syntax
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """One query."""

    items: tuple[Item, ...]
    source: Source
    join: Join | None = None
    where: Syntax | None = None
    group: tuple[Syntax, ...] = ()
    having: Syntax | None = None
    order: tuple[Order, ...] = ()
    distinct: bool = False
    limit: int | None = None
    offset: int = 0
