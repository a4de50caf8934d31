"""Rows of an answer as an Arrow stream; needs pyarrow, which ``penstock[spark]`` brings."""

from typing import Any

import msgspec
import pyarrow as pa

from penstock.core.expression.types import Array, Decimal, Map, Struct, Type, from_field_type
from penstock.serving.relations.running import Found

__all__ = ["arrow_stream"]

_ATOMS = {
    "void": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "interval": pa.duration("us"),
}


def arrow_stream(found: Found, about: dict[str, Any]) -> bytes:
    """Return the rows as a stream with one batch; ``about`` is in the schema's metadata."""
    columns = found.columns
    schema = pa.schema(
        [pa.field(column.name, _type(column.type)) for column in columns],
        metadata={b"penstock": msgspec.json.encode(about)},
    )
    arrays = [
        pa.array([_value(column.type, row[at]) for row in found.rows], type=_type(column.type))
        for at, column in enumerate(columns)
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue().to_pybytes())


def _type(kind: Type) -> Any:
    match kind:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(item):
            return pa.list_(_type(item))
        case Map(value):
            return pa.map_(pa.string(), _type(value))
        case Struct(schema):
            return pa.struct(
                [pa.field(each.name, _type(from_field_type(each.type))) for each in schema.fields]
            )
    return _ATOMS[kind.name]


def _value(kind: Type, value: Any) -> Any:
    """Return a value as pyarrow takes it: records by the names of their fields, maps as pairs."""
    if value is None:
        return None
    match kind:
        case Array(item):
            return [_value(item, each) for each in value]
        case Map(of):
            return [(name, _value(of, each)) for name, each in value.items()]
        case Struct(schema):
            return {
                each.name: _value(from_field_type(each.type), getattr(value, each.name))
                for each in schema.fields
            }
    return value
