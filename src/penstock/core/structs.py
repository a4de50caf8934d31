"""From a schema back to a class: what a reader needs that has the schema but not the user's code.

Such a class is enforced by the codec exactly as the one the schema was read from.
"""

import copy
from typing import Any, Literal

import msgspec

from penstock.core.annotations import HINTS, bounded, read_type
from penstock.core.record import RecordType
from penstock.core.schema import Choice, Field, FieldType, ListOf, MapOf, Nested, Scalar, Schema

__all__ = ["record_of", "struct_of"]


def record_of(schema: Schema) -> RecordType[Any]:
    """Return a record type of this schema, with a class of its own."""
    return RecordType(struct_of(schema), schema)


def struct_of(schema: Schema, *, instants_as_text: bool = False) -> type[Any]:
    """Return a class whose instances hold what records of this schema hold.

    With ``instants_as_text`` an instant is whatever text stands in its place, unread.
    """
    return msgspec.defstruct(
        schema.name,
        [_member(field, instants_as_text=instants_as_text) for field in schema.fields],
        kw_only=True,
        gc=False,
    )


def _member(field: Field, *, instants_as_text: bool) -> tuple[str, Any] | tuple[str, Any, Any]:
    annotation = _annotation(field.type, instants_as_text=instants_as_text)
    if field.limits:
        annotation = bounded(annotation, field.limits)
    if field.nullable:
        annotation = annotation | None
    if not field.optional:
        return field.name, annotation
    given = None if field.default is None else msgspec.convert(field.default, annotation)
    if isinstance(field.type, ListOf | MapOf):
        return field.name, annotation, msgspec.field(default_factory=lambda: copy.copy(given))
    return field.name, annotation, given


def _annotation(kind: FieldType, *, instants_as_text: bool) -> Any:
    match kind:
        case Scalar("instant") if instants_as_text:
            return str
        case Scalar(name):
            return read_type(HINTS[name])[1]
        case Choice(values):
            return Literal[values]
        case ListOf(item):
            return list[_annotation(item, instants_as_text=instants_as_text)]  # type: ignore[misc]
        case MapOf(value):
            inner = _annotation(value, instants_as_text=instants_as_text)
            return dict[str, inner]  # type: ignore[valid-type]
        case Nested(schema):
            return struct_of(schema, instants_as_text=instants_as_text)
