"""The key of a row that is to be deleted: its fields, without the rest of a record."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

from penstock.core.records.annotations import HINTS
from penstock.core.records.schema import Choice, FieldType, Scalar, Schema

__all__ = ["row_of"]


def row_of(schema: Schema, key: Any) -> SimpleNamespace:
    """Return what a record of a table is as far as its key goes.

    ``key`` is the value of the key field, or a tuple of them where the type has several, as in
    ``Driver.table``. TypeError where it is not what the fields hold.
    """
    names = schema.key
    values = key if len(names) > 1 and isinstance(key, tuple | list) else (key,)
    fields = [schema.field(name) for name in names]
    if len(values) != len(names) or not all(
        field is not None and _holds(field.type, value)
        for field, value in zip(fields, values, strict=True)
    ):
        wanted = ", ".join(f"{field.name}: {field.type}" for field in fields if field)
        raise TypeError(f"{key!r} is not a key of {schema.name}, which is ({wanted})")
    return SimpleNamespace(**dict(zip(names, values, strict=True)))


def _holds(kind: FieldType, value: Any) -> bool:
    if isinstance(kind, Choice):
        return value in kind.values
    if not isinstance(kind, Scalar) or type(value) is not HINTS[kind.name]:
        return False
    return not isinstance(value, datetime) or value.tzinfo is not None
