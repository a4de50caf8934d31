"""What a store gave, to a record: checked as strictly as one that came from a stranger."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from penstock.core.records.codec import Codec, JsonCodec
from penstock.core.records.record import RecordType
from penstock.core.records.schema import Choice, Scalar
from penstock.errors import DataError

__all__ = ["RowReader"]

T = TypeVar("T")


class RowReader(Generic[T]):
    """Makes records of one type of rows: JSON in bytes, values by their names, or records."""

    def __init__(self, record: RecordType[T]) -> None:
        self._type = record
        self._codec: Codec[T] = JsonCodec(record)
        fields = record.schema.fields
        self._names = {each.name for each in fields}
        self._nothing = {each.name: None for each in fields if each.nullable}
        self._structured = {
            each.name for each in fields if not isinstance(each.type, Scalar | Choice)
        }

    def read(self, row: Any) -> T:
        """Return the record; DataError where it is none."""
        if isinstance(row, bytes):
            return self._codec.decode(row)
        if isinstance(row, Mapping):
            row = self._named(row)
        if not isinstance(row, self._type.cls):
            text = f"the store gave a {type(row).__name__}, not a {self._type.name}"
            raise DataError(text, code="data.wrong-type")
        return self._codec.decode(self._codec.encode(row))

    def _named(self, row: Mapping[str, Any]) -> Any:
        try:
            given = {
                name: self._value(name, value) for name, value in row.items() if name in self._names
            }
            return msgspec.convert(self._nothing | given, self._type.cls, strict=False)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            text = f"the row is no {self._type.name}: {error}"
            raise DataError(text, code="data.wrong-type") from error

    def _value(self, name: str, value: Any) -> Any:
        """Return a value; lists, maps and records may be JSON in a text."""
        if name in self._structured and isinstance(value, str):
            return msgspec.json.decode(value)
        return value
