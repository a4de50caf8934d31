"""Records to bytes and back. A codec is a seam: JSON today, Avro or Protobuf beside it later."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from penstock.core.records.admission import record_check, zones
from penstock.core.records.decimals import odd_decimal
from penstock.core.records.record import RecordType
from penstock.core.records.schema import Choice, Scalar, Schema
from penstock.core.topic import DEFAULT_MAX_RECORD_BYTES
from penstock.errors import DataError

__all__ = ["Codec", "JsonCodec", "key_encoder"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_ENCODER = msgspec.json.Encoder()


class Codec(Protocol[T]):
    """Bytes of one record type. Both directions raise DataError, never anything else."""

    @property
    def content_type(self) -> str:
        """Return the media type of the bytes."""

    def encode(self, record: T) -> bytes:
        """Return the record's value on the log."""

    def decode(self, value: bytes | None) -> T:
        """Return the record that the bytes hold, validated."""

    def key(self, record: T) -> bytes | None:
        """Return the record's key on the log; None where its type has none."""

    def accept(self, key: bytes | None, value: bytes | None) -> T:
        """Decode a record as it stands on the log, its key checked against its value."""


class JsonCodec(Generic[T]):
    """One JSON object per record. Fields nobody declared are ignored; anything else is checked."""

    content_type = "application/json"

    def __init__(self, record: RecordType[T], *, max_bytes: int = DEFAULT_MAX_RECORD_BYTES) -> None:
        self._name = record.name
        self._max_bytes = max_bytes
        self._read = msgspec.json.Decoder(record.cls).decode
        self._key = key_encoder(record.schema)
        self._check = record_check(record.schema)
        usual = zones(record.schema)
        self._zones = usual[0] if usual else None
        self._utc = usual[1] if usual else None
        self._odd_decimal = odd_decimal(record.schema)
        self._checks = self._check is not None or self._odd_decimal is not None

    def encode(self, record: T) -> bytes:
        """Return the record as compact JSON, its fields in declared order."""
        try:
            value = _ENCODER.encode(record)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._error("data.not-encodable", str(error)) from error
        if len(value) > self._max_bytes:
            raise self._too_large(len(value))
        return value

    def encode_valid(self, record: T) -> bytes:
        """Return the record as :meth:`encode` does, if whoever reads it will accept it.

        Python checks no types and no limits where a record is made; a reader does.
        """
        value = self.encode(record)
        try:
            self.decode(value)
        except DataError as error:
            null = ", got `null`" in error.message
            raise DataError(
                f"its readers would refuse it: {error.message}",
                code="data.not-encodable",
                detail="a number that is not finite is null in JSON" if null else "",
            ) from error
        return value

    def decode(self, value: bytes | None) -> T:
        """Return the record that the bytes hold, or raise a DataError that says why not."""
        if value is None:
            raise self._error("data.null-value", "the value is null")
        if len(value) > self._max_bytes:
            raise self._too_large(len(value))
        try:
            found = self._read(value)
        except msgspec.ValidationError as error:
            raise self._error(_validation_code(str(error)), str(error)) from error
        except msgspec.DecodeError as error:
            raise self._error("data.not-json", str(error)) from error
        except UnicodeDecodeError as error:
            raise self._error("data.not-json", f"a text is not UTF-8: {error}") from error
        except RecursionError as error:
            raise self._error("data.too-deep", "the JSON is nested too deeply") from error
        if not self._checks or (self._zones is not None and self._zones(found) == self._utc):
            return found
        if self._check is not None and (reason := self._check(found)):
            raise self._error("data.invalid-value", reason)
        if self._odd_decimal is not None and (text := self._odd_decimal(value)) is not None:
            raise self._error("data.invalid-value", f"the text {text[:100]!r} is not a number")
        return found

    def key(self, record: T) -> bytes | None:
        """Return the key fields' text as UTF-8; None where the type has no key."""
        if self._key is None:
            return None
        try:
            return self._key(record)
        except (AttributeError, TypeError, ValueError) as error:
            raise self._error("data.not-encodable", f"its key: {error}") from error

    def accept(self, key: bytes | None, value: bytes | None) -> T:
        """Return the record, after checking that its key on the log is the one it must have."""
        record = self.decode(value)
        if self._key is not None:
            expected = self._key(record)
            if key != expected:
                raise self._wrong_key(key, expected)
        return record

    def _wrong_key(self, key: bytes | None, expected: bytes) -> DataError:
        if key is None:
            return self._error("data.null-key", f"the key is null, the record says {expected!r}")
        return self._error("data.key-mismatch", f"the key is {key!r}, the record says {expected!r}")

    def _too_large(self, count: int) -> DataError:
        text = f"it has {count} bytes, its stream takes {self._max_bytes}"
        return self._error("data.too-large", text)

    def _error(self, code: str, text: str) -> DataError:
        return DataError(f"not a {self._name}: {text}", code=code)


def key_encoder(schema: Schema) -> Callable[[Any], bytes] | None:
    """Return the function from a record to its key on the log; None where there is no key.

    One text field is its UTF-8 bytes, any other single field its JSON without quotes, several
    fields a compact JSON array.
    """
    if not schema.key:
        return None
    read: Callable[[Any], Any] = attrgetter(*schema.key)
    if len(schema.key) > 1:
        return lambda record: _ENCODER.encode(read(record))
    field = schema.field(schema.key[0])
    if field is None or field.type == Scalar("text") or isinstance(field.type, Choice):
        return lambda record: read(record).encode()
    return lambda record: _ENCODER.encode(read(record)).strip(b'"')


def _validation_code(text: str) -> str:
    if "missing required field" in text:
        return "data.missing-field"
    return "data.wrong-type" if ", got `" in text else "data.invalid-value"
