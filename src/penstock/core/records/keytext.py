"""From a key on the log back to the values of its fields."""

from collections.abc import Callable
from typing import Any

import msgspec

from penstock.core.records.annotations import HINTS
from penstock.core.records.schema import Choice, Field, FieldType, Scalar, Schema

__all__ = ["key_reader"]

_BARE = frozenset({"bool", "int", "float"})
"""What JSON has without quotes."""


def key_reader(schema: Schema) -> Callable[[bytes], tuple[Any, ...]]:
    """Return the function from a key on the log to the values of the key fields, in their order.

    It is the way back from ``key_encoder``; it raises ValueError for bytes that are no such key.
    """
    fields = [schema.field(name) for name in schema.key]
    kinds = [_kind(field) for field in fields if field is not None]
    if len(kinds) > 1:
        several = msgspec.json.Decoder(tuple[tuple(kinds)])  # type: ignore[misc]
        return lambda key: tuple(several.decode(key))
    if not kinds:
        return lambda _: ()
    if kinds[0] is str:
        return lambda key: (key.decode(),)
    read = msgspec.json.Decoder(kinds[0]).decode
    if _is_bare(fields[0]):
        return lambda key: (read(key),)
    return lambda key: (read(b'"' + key + b'"'),)


def _kind(field: Field) -> Any:
    kind: FieldType = field.type
    if isinstance(kind, Scalar):
        return HINTS[kind.name]
    return str if isinstance(kind, Choice) else Any


def _is_bare(field: Field | None) -> bool:
    return field is not None and isinstance(field.type, Scalar) and field.type.name in _BARE
