"""Record types that Penstock makes itself: the results of operators."""

from typing import Any

from penstock.core.records.annotations import SCHEMA_ATTRIBUTE
from penstock.core.records.record import RECORD_ATTRIBUTE, RecordType
from penstock.core.records.schema import Schema
from penstock.core.records.structs import struct_of
from penstock.errors import Place

__all__ = ["made_record", "type_name"]


def made_record(schema: Schema, place: Place | None = None) -> RecordType[Any]:
    """Return a record type of this schema, as if a class had been marked with ``record``.

    Its fields are given by name.
    """
    cls = struct_of(schema, frozen=True)
    found = RecordType(cls, schema, place)
    setattr(cls, RECORD_ATTRIBUTE, found)
    setattr(cls, SCHEMA_ATTRIBUTE, schema)
    return found


def type_name(name: str) -> str:
    """Return the name of the type of a stream's or table's records: ``by_minute``, ``ByMinute``."""
    words = name.replace("-", "_").replace(".", "_").split("_")
    return "".join(word.capitalize() for word in words)
