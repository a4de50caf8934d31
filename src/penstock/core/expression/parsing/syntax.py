"""An expression as it is written: untyped, every node with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from penstock.core.expression.types import Type

__all__ = ["Call", "Case", "Cast", "Constant", "Interval", "Item", "Member", "Name", "Syntax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where in the text a node stands, and how many nodes are below one another in it."""

    start: int
    end: int
    depth: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Spot):
    """A value that is written out."""

    value: object
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Spot):
    """A length of time."""

    microseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Spot):
    """A field of the record."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Spot):
    """A field of a record inside the record: ``of.name``."""

    of: Syntax
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(Spot):
    """An item of a list or map: ``of[index]``."""

    of: Syntax
    index: Syntax


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Spot):
    """A function or operator; operators go by their sign (``+``, ``and``, ``is null``)."""

    name: str
    arguments: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Spot):
    """``CASE [subject] WHEN .. THEN .. ELSE .. END``."""

    subject: Syntax | None
    branches: tuple[tuple[Syntax, Syntax], ...]
    otherwise: Syntax | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(Spot):
    """``CAST(operand AS type)``; its ``TRY_`` form means the same."""

    operand: Syntax
    type: Type


Syntax: TypeAlias = Constant | Interval | Name | Member | Item | Call | Case | Cast
