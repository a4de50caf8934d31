"""From a schema back to a class: what a reader needs that has the schema but not the user's code.

Such a class is enforced by the codec exactly as the one the schema was read from.
"""

import copy
from typing import Any, Literal

import msgspec

from penstock.core.records.annotations import HINTS, bounded, read_type
from penstock.core.records.schema import (
    Choice,
    Field,
    FieldType,
    ListOf,
    MapOf,
    Nested,
    Scalar,
    ScalarName,
    Schema,
)

__all__ = ["struct_of"]

Unread = dict[ScalarName, type[Any]]
"""Types of values that are not to be read, and what stands for them."""


def struct_of(
    schema: Schema,
    *,
    instants_as_text: bool = False,
    decimals_unread: bool = False,
    frozen: bool = False,
    closed: bool = False,
) -> type[Any]:
    """Return a class whose instances hold what records of this schema hold.

    With ``instants_as_text`` an instant is whatever text stands in its place, unread; with
    ``decimals_unread`` a decimal is the JSON in its place. A ``closed`` one refuses fields that
    nobody declared, at any depth.
    """
    unread: Unread = {}
    if instants_as_text:
        unread["instant"] = str
    if decimals_unread:
        unread["decimal"] = msgspec.Raw
    return _struct_of(schema, unread, frozen=frozen, closed=closed)


def _struct_of(
    schema: Schema, unread: Unread, *, frozen: bool = False, closed: bool = False
) -> type[Any]:
    return msgspec.defstruct(
        schema.name,
        [_member(field, schema, unread, closed) for field in schema.fields],
        kw_only=True,
        gc=False,
        frozen=frozen,
        forbid_unknown_fields=closed,
    )


def _member(
    field: Field, schema: Schema, unread: Unread, closed: bool
) -> tuple[str, Any] | tuple[str, Any, Any]:
    annotation = _annotation(field.type, unread, closed)
    annotation = bounded(annotation, field.limits, event_time=field.name == schema.time)
    if field.nullable and annotation is not msgspec.Raw:
        annotation = annotation | None
    if not field.optional:
        return field.name, annotation
    given = None
    if field.default is not None and not ("decimal" in unread and field.holds("decimal")):
        given = msgspec.convert(field.default, annotation)
    if isinstance(field.type, ListOf | MapOf):
        return field.name, annotation, msgspec.field(default_factory=lambda: copy.copy(given))
    return field.name, annotation, given


def _annotation(kind: FieldType, unread: Unread, closed: bool) -> Any:
    match kind:
        case Scalar(name):
            return unread.get(name) or read_type(HINTS[name])[1]
        case Choice(values):
            return Literal[values]
        case ListOf(item):
            return list[_annotation(item, unread, closed)]  # type: ignore[misc]
        case MapOf(value):
            inner = _annotation(value, unread, closed)
            return dict[str, inner]  # type: ignore[valid-type]
        case Nested(schema):
            return _struct_of(schema, unread, closed=closed)
