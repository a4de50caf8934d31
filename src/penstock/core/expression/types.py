"""The types of expressions: Spark SQL's own, and how they widen to one another.

The rules are those of Spark 4 in ANSI mode. Texts never become numbers by themselves, nor numbers
texts: such an expression is refused, and a cast says what is meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from penstock.core.records.schema import (
    Choice,
    FieldType,
    ListOf,
    MapOf,
    Nested,
    Scalar,
    ScalarName,
    Schema,
)

__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "INT",
    "INTERVAL",
    "LEAST_SCALE",
    "MAX_DIGITS",
    "STRING",
    "TIMESTAMP",
    "VOID",
    "Array",
    "Atom",
    "AtomName",
    "Decimal",
    "Map",
    "Struct",
    "Type",
    "common_type",
    "decimal_of",
    "from_field_type",
    "is_comparable",
    "is_numeric",
    "to_field_type",
    "wider_decimal",
]

MAX_DIGITS = 38
"""The digits of the longest decimal."""
LEAST_SCALE = 6
"""What a decimal's scale is not cut below to make room for its whole digits."""

AtomName = Literal[
    "void",
    "boolean",
    "int",
    "bigint",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "interval",
]


@dataclass(frozen=True, slots=True)
class Atom:
    """A type without parameters; ``interval`` is a length of time, only added to timestamps."""

    name: AtomName

    @property
    def kind(self) -> str:
        """Return the word that names the type's operations."""
        return self.name

    def __str__(self) -> str:
        """Return Spark's name of the type."""
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """A number of so many decimal digits in all, so many of them behind the point."""

    precision: int
    scale: int
    kind = "decimal"

    @classmethod
    def bounded(cls, precision: int, scale: int) -> Decimal:
        """Return the type, the fraction cut first where 38 digits do not hold it."""
        excess = max(precision - MAX_DIGITS, 0)
        return cls(precision - excess, max(scale - excess, 0) if excess else scale)

    @classmethod
    def adjusted(cls, precision: int, scale: int) -> Decimal:
        """Return the type of a result, at least six digits of its fraction kept."""
        if precision <= MAX_DIGITS:
            return cls(precision, scale)
        return cls(MAX_DIGITS, max(MAX_DIGITS - (precision - scale), min(scale, LEAST_SCALE)))

    @property
    def whole(self) -> int:
        """Return how many digits stand before the point."""
        return self.precision - self.scale

    def __str__(self) -> str:
        """Return Spark's name of the type."""
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values, none of them null."""

    item: Type
    kind = "array"

    def __str__(self) -> str:
        """Return Spark's name of the type."""
        return f"array<{self.item}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Strings to values, none of them null."""

    value: Type
    kind = "map"

    def __str__(self) -> str:
        """Return Spark's name of the type."""
        return f"map<string,{self.value}>"


@dataclass(frozen=True, slots=True)
class Struct:
    """A record inside a record."""

    schema: Schema
    kind = "struct"

    def __str__(self) -> str:
        """Return the record's name."""
        return self.schema.name


Type: TypeAlias = Atom | Decimal | Array | Map | Struct

VOID, BOOLEAN, INT, BIGINT = Atom("void"), Atom("boolean"), Atom("int"), Atom("bigint")
DOUBLE, STRING, BINARY = Atom("double"), Atom("string"), Atom("binary")
DATE, TIMESTAMP, INTERVAL = Atom("date"), Atom("timestamp"), Atom("interval")

FIELD_DECIMAL = Decimal(38, 18)
_INTEGERS = {INT: Decimal(10, 0), BIGINT: Decimal(20, 0)}
_ORDER: tuple[Type, ...] = (INT, BIGINT, DOUBLE)
_OF_SCALAR: dict[ScalarName, Type] = {
    "bool": BOOLEAN,
    "int": BIGINT,
    "float": DOUBLE,
    "text": STRING,
    "bytes": BINARY,
    "instant": TIMESTAMP,
    "date": DATE,
    "decimal": FIELD_DECIMAL,
}
_TO_SCALAR: dict[str, ScalarName] = {
    "boolean": "bool",
    "int": "int",
    "bigint": "int",
    "double": "float",
    "string": "text",
    "binary": "bytes",
    "timestamp": "instant",
    "date": "date",
    "decimal": "decimal",
}


def is_numeric(type_: Type) -> bool:
    """Return whether arithmetic takes values of the type."""
    return type_ in _ORDER or isinstance(type_, Decimal)


def is_comparable(type_: Type) -> bool:
    """Return whether values of the type have an order and can be chosen from several."""
    return isinstance(type_, Decimal) or (isinstance(type_, Atom) and type_ != INTERVAL)


def decimal_of(type_: Type) -> Decimal | None:
    """Return the decimal that holds every value of a decimal or whole-number type."""
    if isinstance(type_, Decimal):
        return type_
    return _INTEGERS.get(type_) if isinstance(type_, Atom) else None


def wider_decimal(left: Decimal, right: Decimal) -> Decimal:
    """Return the decimal that holds both, as far as 38 digits do."""
    scale = max(left.scale, right.scale)
    return Decimal.bounded(scale + max(left.whole, right.whole), scale)


def common_type(types: Iterable[Type]) -> Type | None:
    """Return the type that all widen to, or None where there is none."""
    found: Type | None = VOID
    for type_ in types:
        if found is None:
            return None
        found = _common(found, type_)
    return found


def _common(left: Type, right: Type) -> Type | None:
    if right in (left, VOID):
        return left
    if left == VOID:
        return right
    if left in _ORDER and right in _ORDER:
        return max(left, right, key=_ORDER.index)
    if {left, right} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if not (is_numeric(left) and is_numeric(right)):
        return None
    one, other = decimal_of(left), decimal_of(right)
    return DOUBLE if one is None or other is None else wider_decimal(one, other)


def from_field_type(type_: FieldType) -> Type:
    """Return the type of a record's field in expressions."""
    match type_:
        case Scalar(name):
            return _OF_SCALAR[name]
        case Choice():
            return STRING
        case ListOf(item):
            return Array(from_field_type(item))
        case MapOf(value):
            return Map(from_field_type(value))
        case Nested(schema):
            return Struct(schema)


def to_field_type(type_: Type) -> FieldType | None:
    """Return the type a record's field needs to hold such values; None for null and intervals."""
    match type_:
        case Array(item):
            inner = to_field_type(item)
            return inner and ListOf(inner)
        case Map(value):
            inner = to_field_type(value)
            return inner and MapOf(inner)
        case Struct(schema):
            return Nested(schema)
    name = _TO_SCALAR.get(type_.kind)
    return Scalar(name) if name else None
