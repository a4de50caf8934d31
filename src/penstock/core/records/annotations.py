"""From a class's annotations to the types of a schema, and to what the codec enforces."""

import types
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from penstock.core.instants import FIRST_MILLIS, LAST_MILLIS
from penstock.core.matching.matching import searcher
from penstock.core.records.bounds import check_default, check_limits
from penstock.core.records.schema import (
    Choice,
    Field,
    FieldType,
    Limits,
    ListOf,
    MapOf,
    Nested,
    Scalar,
    ScalarName,
    Schema,
)

__all__ = ["HINTS", "SCHEMA_ATTRIBUTE", "SUPPORTED", "bounded", "read_field", "read_type"]

SCHEMA_ATTRIBUTE = "__penstock_schema__"
SUPPORTED = (
    "bool, int, float, str, bytes, datetime, date, Decimal, Literal of texts, list[...], "
    "dict[str, ...], another @record class, and any of these with | None"
)
_SCALARS: dict[type, ScalarName] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "text",
    bytes: "bytes",
    datetime: "instant",
    date: "date",
    Decimal: "decimal",
}
HINTS: dict[ScalarName, type] = {name: hint for hint, name in _SCALARS.items()}
"""How a scalar is annotated in a class."""
_INT64_RANGE = (-(2**63), 2**63 - 1)
_INT64 = msgspec.Meta(ge=_INT64_RANGE[0], le=_INT64_RANGE[1])
_ZONED = msgspec.Meta(tz=True)


def read_field(name: str, hint: Any, given: Any, *, event_time: bool = False) -> tuple[Field, Any]:
    """Return a field of the schema and the annotation its codec is to enforce.

    ``given`` is the class's default, or ``msgspec.NODEFAULT``; ``event_time`` says that the field
    is the event time of its record. TypeError: not a type for a record. PatternError: its pattern
    is none that every engine reads alike. BoundError: limits or default do not fit the type.
    """
    plain, bounds = _limits_of(hint)
    plain, nullable = _without_none(plain)
    if not bounds:
        plain, bounds = _limits_of(plain)
    kind, annotation = read_type(plain)
    if bounds:
        check_limits(kind, bounds)
        if bounds.pattern is not None:
            searcher(bounds.pattern)
    annotation = bounded(annotation, bounds, event_time=event_time)
    whole = annotation | None if nullable else annotation
    default = None if given is msgspec.NODEFAULT else msgspec.to_builtins(given)
    if given is not msgspec.NODEFAULT:
        check_default(whole, bounds, given)
    optional = nullable or given is not msgspec.NODEFAULT
    field = Field(
        name=name, type=kind, nullable=nullable, optional=optional, default=default, limits=bounds
    )
    return field, whole


def bounded(annotation: Any, bounds: Limits | None, *, event_time: bool = False) -> Any:
    """Return an annotation with limits; each side of an int is bounded once, as msgspec wants.

    An event time in milliseconds is bounded by the years that an instant may have.
    """
    said = bounds.to_json() if bounds else {}
    # Patterns are matched by the codec: msgspec would ask Python's engine, which may take for ever.
    said.pop("pattern", None)
    if annotation == Annotated[int, _INT64]:
        low, high = (FIRST_MILLIS, LAST_MILLIS) if event_time else _INT64_RANGE
        if said.get("gt", low) <= low:
            said.pop("gt", None)
            said["ge"] = max(low, said.get("ge", low))
        if said.get("lt", high) >= high:
            said.pop("lt", None)
            said["le"] = min(high, said.get("le", high))
        annotation = int
    return Annotated[annotation, msgspec.Meta(**said)] if said else annotation


def _limits_of(hint: Any) -> tuple[Any, Limits | None]:
    if get_origin(hint) is not Annotated:
        return hint, None
    plain, *extras = get_args(hint)
    return plain, next((extra for extra in extras if isinstance(extra, Limits)), None)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in {Union, types.UnionType}:
        return hint, False
    rest = [part for part in get_args(hint) if part is not type(None)]
    if len(rest) != 1:
        raise TypeError(f"{hint} is a union of several types")
    return rest[0], True


def read_type(hint: Any) -> tuple[FieldType, Any]:
    """Return the type of a schema and the annotation that its codec is to enforce."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and hint in _SCALARS:
        extra = {int: _INT64, datetime: _ZONED}.get(hint)
        return Scalar(_SCALARS[hint]), Annotated[hint, extra] if extra else hint
    if origin is Literal and all(isinstance(value, str) for value in arguments):
        return Choice(tuple(arguments)), hint
    if origin is list:
        item, annotation = read_type(arguments[0])
        return ListOf(item), list[annotation]  # type: ignore[valid-type]
    if origin is dict and arguments[0] is str:
        value, annotation = read_type(arguments[1])
        return MapOf(value), dict[str, annotation]  # type: ignore[valid-type]
    if isinstance(hint, type) and isinstance(inner := hint.__dict__.get(SCHEMA_ATTRIBUTE), Schema):
        return Nested(inner), hint
    raise TypeError(f"the type {getattr(hint, '__name__', hint)} is not one a record can have")
