"""Rows of tables as documents, and documents as JSON text that keeps instants and decimals apart.

In the text an instant is ``{"$date": "2026-01-01T00:00:00Z"}``, a decimal ``{"$numberDecimal":
"1.10"}``, and bytes are ``{"$binary": "aGk="}``, as MongoDB writes them.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from penstock.core.live.order import IDENTITY
from penstock.core.records.admission import MAX_EXPONENT
from penstock.core.records.record import RecordType
from penstock.errors import DataError

__all__ = ["DEEPEST", "decode_document", "document_reader", "encode_document", "readable"]

DEEPEST = 100
"""How deep a document may be nested."""

_LONGEST_DECIMAL = 2 * MAX_EXPONENT
_SHOWN = 60
_DATE, _DECIMAL, _BINARY = "$date", "$numberDecimal", "$binary"
_PLAIN = (datetime, date, Decimal, bytes)


def document_reader(record: RecordType[Any], field: str | None = None) -> Callable[[Any], Any]:
    """Return what makes a document of a row: its fields, with its key as the identity.

    ``field`` names a field that holds the document as JSON text; then its other fields, all but the
    key, are left out. An identity of its own stays. A DataError says what is wrong with the text.
    """
    keys = record.schema.key

    def identity(row: Any) -> Any:
        if len(keys) == 1:
            return _plain(getattr(row, keys[0]))
        return {name: _plain(getattr(row, name)) for name in keys}

    def of_fields(row: Any) -> Any:
        return {IDENTITY: identity(row), **_plain(row)}

    def of_text(row: Any) -> Any:
        found = decode_document(getattr(row, field or "") or "")
        return found if IDENTITY in found else {IDENTITY: identity(row), **found}

    return of_fields if field is None else of_text


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, builtin_types=_PLAIN, str_keys=True)


def encode_document(document: Any) -> str:
    """Return a document as text that `decode_document` reads."""
    return msgspec.json.encode(_written(document)).decode()


def decode_document(text: str) -> dict[str, Any]:
    """Return the document that a text holds; a DataError says what is wrong with it."""
    try:
        found = readable(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(f"it is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise _unreadable("it is JSON, but not an object")
    return found


def readable(value: Any, depth: int = 0) -> Any:
    """Return a JSON value with its instants, decimals and bytes as values of these types."""
    if depth > DEEPEST:
        raise _unreadable(f"it is nested more than {DEEPEST} levels deep")
    if type(value) is list:
        return [readable(each, depth + 1) for each in value]
    if type(value) is not dict:
        return value
    if len(value) == 1:
        ((name, given),) = value.items()
        if name in _READERS and isinstance(given, str):
            try:
                return _READERS[name](given)
            except (ValueError, InvalidOperation):
                raise _unreadable(f"{name} takes no {given[:_SHOWN]!r}") from None
    return {name: readable(each, depth + 1) for name, each in value.items()}


def _unreadable(text: str) -> DataError:
    hint = 'write a JSON object; an instant is {"$date": "2026-01-01T00:00:00Z"}'
    return DataError(f"the document cannot be read: {text}", code="live.document", hint=hint)


def _written(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _written(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_written(each) for each in value]
    if isinstance(value, datetime):
        return {_DATE: _in_utc(value)}
    if isinstance(value, date):
        return {_DATE: _in_utc(datetime.combine(value, time(), UTC))}
    if isinstance(value, Decimal):
        return {_DECIMAL: str(value)}
    return {_BINARY: b64encode(value).decode()} if isinstance(value, bytes) else value


def _in_utc(value: datetime) -> str:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    try:
        aware = aware.astimezone(UTC)
    except OverflowError:  # of the first or the last day of the calendar: its own zone stays
        return aware.isoformat()
    return aware.isoformat().replace("+00:00", "Z")


def _instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _decimal(text: str) -> Decimal:
    if len(text) > _LONGEST_DECIMAL:
        raise ValueError(text)
    found = Decimal(text)
    # One with a giant exponent would take all memory as soon as it is added up.
    if not found.is_finite() or abs(int(found.as_tuple().exponent)) > MAX_EXPONENT:
        raise ValueError(text)
    return found


_READERS: dict[str, Callable[[str], Any]] = {
    _DATE: _instant,
    _DECIMAL: _decimal,
    _BINARY: lambda text: b64decode(text, validate=True),
}
