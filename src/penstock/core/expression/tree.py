"""The typed tree of an expression: five kinds of node, frozen and comparable.

A tree is made only by the binder, which has checked every type in it; each call names one entry
of the table of operations, which says how Python and Spark carry it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from typing import Literal as OneOf

from penstock.core.expression.types import Type, to_field_type
from penstock.core.records.schema import FieldType, Schema

__all__ = [
    "Call",
    "Expression",
    "Field",
    "Literal",
    "Member",
    "Node",
    "Taken",
    "TakenFunction",
    "walk",
]

TakenFunction = OneOf["count", "sum", "min", "max", "first", "last"]
"""What becomes of the values of several records."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is part of the expression."""

    value: Any
    type: Type

    @property
    def nullable(self) -> bool:
        """Return whether the value is null."""
        return self.value is None

    def __eq__(self, other: object) -> bool:
        """Compare type and value, and take -0.0 and 0.0 for two values."""
        return (
            isinstance(other, Literal)
            and self.type == other.type
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        """Return a hash that fits the comparison."""
        return hash((self.type, repr(self.value)))


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the record."""

    name: str
    type: Type
    nullable: bool


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a record inside the record."""

    of: Node
    name: str
    type: Type
    nullable: bool


@dataclass(frozen=True, slots=True)
class Call:
    """An operation on values."""

    name: str
    arguments: tuple[Node, ...]
    type: Type
    nullable: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """What the records that a step of a pattern has taken come to: ``sum(step.field)``."""

    function: TakenFunction
    step: str
    of: Node | None
    """The value of each of these records; None: they are counted themselves."""
    type: Type
    nullable: bool


Node: TypeAlias = Literal | Field | Member | Call | Taken


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, parents first."""
    yield node
    match node:
        case Member(of):
            yield from walk(of)
        case Call(_, arguments):
            for argument in arguments:
                yield from walk(argument)


@dataclass(frozen=True, slots=True)
class Expression:
    """A text that was read, typed and checked against a schema. Equal where the trees are."""

    root: Node
    text: str = field(compare=False)
    schema: Schema = field(compare=False, repr=False)

    @property
    def type(self) -> Type:
        """Return the type of the value, in Spark's words."""
        return self.root.type

    @property
    def field_type(self) -> FieldType | None:
        """Return the type of a record's field that holds the value; None for a bare null."""
        return to_field_type(self.root.type)

    @property
    def nullable(self) -> bool:
        """Return whether the value may be null."""
        return self.root.nullable

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields it reads, sorted; a record inside the record as ``outer.inner``."""
        return tuple(sorted(set(_paths(self.root))))

    def to_json(self) -> dict[str, Any]:
        """Return the text with the part of the schema it needs, as plain JSON values."""
        used = {path.partition(".")[0] for path in self.fields}
        kept = tuple(found for found in self.schema.fields if found.name in used)
        pruned = replace(self.schema, fields=kept, key=(), time=None)
        return {"text": self.text, "schema": pruned.to_json()}

    def __str__(self) -> str:
        """Return the text as it was written."""
        return self.text


def _paths(node: Node) -> Iterator[str]:
    match node:
        case Field(name):
            yield name
        case Member(of, name) if path := _path(of):
            yield f"{path}.{name}"
        case Member(of):
            yield from _paths(of)
        case Call(_, arguments):
            for argument in arguments:
                yield from _paths(argument)


def _path(node: Node) -> str:
    match node:
        case Field(name):
            return name
        case Member(of, name) if path := _path(of):
            return f"{path}.{name}"
    return ""
