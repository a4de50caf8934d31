"""The schema of a record type as JSON Schema (the dialect of OpenAPI 3.1)."""

from typing import Any

from penstock.core.records.schema import (
    Choice,
    Field,
    FieldType,
    Limits,
    ListOf,
    MapOf,
    Nested,
    Scalar,
    Schema,
)

__all__ = ["schema_document"]

_SCALARS: dict[str, dict[str, Any]] = {
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "float": {"type": "number"},
    "text": {"type": "string"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "instant": {
        "type": "string",
        "format": "date-time",
        "description": "an instant with a zone: 2026-05-01T12:00:00Z",
    },
    "date": {"type": "string", "format": "date"},
    "decimal": {
        "type": ["string", "number"],
        "description": "at most 20 digits before the point and 18 behind it",
    },
}
_LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
}


def schema_document(schema: Schema, *, closed: bool = True) -> dict[str, Any]:
    """Return a record type as JSON Schema; ``closed``: as a gateway takes it, no field besides."""
    found: dict[str, Any] = {
        "type": "object",
        "title": schema.name,
        "properties": {field.name: _field(field, closed=closed) for field in schema.fields},
        "required": [field.name for field in schema.fields if not field.optional],
    }
    if closed:
        found["additionalProperties"] = False
    if schema.key:
        found["description"] = f"keyed by {', '.join(schema.key)}"
    return found


def _field(field: Field, *, closed: bool) -> dict[str, Any]:
    found = _kind(field.type, closed=closed)
    if field.limits is not None:
        found |= _limits(field.limits)
    if field.nullable:
        found = {"anyOf": [found, {"type": "null"}]}
    if field.optional and (field.default is not None or field.nullable):
        found["default"] = field.default
    return found


def _kind(kind: FieldType, *, closed: bool) -> dict[str, Any]:
    match kind:
        case Scalar(name):
            return dict(_SCALARS[name])
        case Choice(values):
            return {"type": "string", "enum": list(values)}
        case ListOf(item):
            return {"type": "array", "items": _kind(item, closed=closed)}
        case MapOf(value):
            return {"type": "object", "additionalProperties": _kind(value, closed=closed)}
        case Nested(schema):
            return schema_document(schema, closed=closed)


def _limits(limits: Limits) -> dict[str, Any]:
    return {_LIMITS[name]: value for name, value in limits.to_json().items()}
