"""Records to bytes and back. A codec is a seam: JSON today, Avro or Protobuf beside it later."""

from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from penstock.core.records.admission import record_check, zones
from penstock.core.records.decimals import odd_decimal
from penstock.core.records.record import RecordType
from penstock.core.records.schema import Choice, Field, Scalar, Schema
from penstock.core.topic import DEFAULT_MAX_RECORD_BYTES
from penstock.errors import DataError

__all__ = ["Codec", "JsonCodec", "key_encoder"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_ENCODER = msgspec.json.Encoder()
_INSTANT = Scalar("instant")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_UNWRITABLE = (TypeError, ValueError, RecursionError)


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
    """One JSON object per record. Fields nobody declared are ignored; anything else is checked.

    ``keyed``: a record's key on the log is that of its fields.
    """

    content_type = "application/json"

    def __init__(
        self,
        record: RecordType[T],
        *,
        max_bytes: int = DEFAULT_MAX_RECORD_BYTES,
        keyed: bool = True,
    ) -> None:
        self._keyed = keyed
        self._name = record.name
        self._max_bytes = max_bytes
        self._read = msgspec.json.Decoder(record.cls).decode
        self._key = key_encoder(record.schema)
        self._check = record_check(record.schema)
        usual = zones(record.schema)
        self._zones = usual[0] if usual else None
        self._utc = usual[1] if usual else None
        self._odd_decimal = odd_decimal(record.schema)
        checked = self._check is not None or self._odd_decimal is not None
        self._admission = self._admit if checked else None
        # These are called for every record, so they are made for the type, without lookups.
        self.accept = self._make_accept()
        self.restate = self._make_restate()
        self.encode_valid = self._make_encode_valid()

    def encode(self, record: T) -> bytes:
        """Return the record as compact JSON, its fields in declared order."""
        try:
            value = _ENCODER.encode(record)
        except _UNWRITABLE as error:
            raise self._error("data.not-encodable", str(error)) from error
        if len(value) > self._max_bytes:
            raise self._too_large(len(value))
        return value

    def decode(self, value: bytes | None) -> T:
        """Return the record that the bytes hold, or raise a DataError that says why not."""
        if value is None:
            raise self._error("data.null-value", "the value is null")
        if len(value) > self._max_bytes:
            raise self._too_large(len(value))
        try:
            found = self._read(value)
        except _UNREADABLE as error:
            raise self._unreadable(error) from error
        if self._admission is not None:
            self._admission(found, value)
        return found

    def key(self, record: T) -> bytes | None:
        """Return the key fields' text as UTF-8; None where the type has no key."""
        if self._key is None:
            return None
        try:
            return self._key(record)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise self._error("data.not-encodable", f"its key: {error}") from error

    def _make_accept(self) -> Callable[[bytes | None, bytes | None], T]:
        read, decode, most = self._read, self.decode, self._max_bytes
        key_of = self._key if self._keyed else None
        admit = self._admission

        def accept(key: bytes | None, value: bytes | None) -> T:
            """Return the record, after checking that its key on the log is the one it must have."""
            if value is None or len(value) > most:
                return decode(value)  # which says why it refuses
            try:
                record = read(value)
            except _UNREADABLE as error:
                raise self._unreadable(error) from error
            if admit is not None:
                admit(record, value)
            if key_of is not None and key != (expected := key_of(record)):
                raise self._wrong_key(key, expected)
            return record

        return accept

    def _make_restate(self) -> Callable[[bytes], tuple[bytes | None, bytes]]:
        read, write, most = self._read, _ENCODER.encode, self._max_bytes
        key_of, admit = self._key, self._admission

        def restate(value: bytes) -> tuple[bytes | None, bytes]:
            """Return key and value on the log of a record that somebody wrote as JSON."""
            try:
                if len(value) <= most:
                    record = read(value)
                    if admit is not None:
                        admit(record, value)
                    found = write(record)
                    if len(found) <= most:
                        return None if key_of is None else key_of(record), found
            except (*_UNREADABLE, *_UNWRITABLE, AttributeError):
                pass
            record = self.decode(value)  # which says why it refuses; or one of the next two does
            return self.key(record), self.encode(record)

        return restate

    def _make_encode_valid(self) -> Callable[[T], bytes]:
        write, read, most, encode = _ENCODER.encode, self._read, self._max_bytes, self.encode
        admit = self._admission

        def encode_valid(record: T) -> bytes:
            """Return the record as :meth:`encode` does, if whoever reads it will accept it.

            Python checks no types and no limits where a record is made; a reader does.
            """
            try:
                value = write(record)
            except _UNWRITABLE:
                return encode(record)  # which says why it refuses
            if len(value) > most:
                return encode(record)
            try:
                found = read(value)
                if admit is not None:
                    admit(found, value)
            except _UNREADABLE as error:
                raise _refused_by_readers(self._unreadable(error)) from error
            except DataError as error:
                raise _refused_by_readers(error) from error
            return value

        return encode_valid

    def _admit(self, record: T, value: bytes) -> None:
        """Raise a DataError where a record that was read cannot be held by every engine."""
        if self._zones is not None and self._zones(record) == self._utc:
            return
        if self._check is not None and (reason := self._check(record)):
            raise self._error("data.invalid-value", reason)
        if self._odd_decimal is not None and (text := self._odd_decimal(value)) is not None:
            raise self._error("data.invalid-value", f"the text {text[:100]!r} is not a number")

    def _unreadable(self, error: Exception) -> DataError:
        """Return what is wrong with bytes that were not read."""
        match error:
            case msgspec.ValidationError():
                return self._error(_validation_code(str(error)), str(error))
            case msgspec.DecodeError():
                return self._error("data.not-json", str(error))
            case RecursionError():
                return self._error("data.too-deep", "the JSON is nested too deeply")
        return self._error("data.not-json", f"a text is not UTF-8: {error}")

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
    fields a compact JSON array. Equal values have one key: instants are written in UTC.
    """
    if not schema.key:
        return None
    read: Callable[[Any], Any] = attrgetter(*schema.key)
    fields = [schema.field(name) for name in schema.key]
    if any(field is not None and field.type == _INSTANT for field in fields):
        reads = [_reader(name, field) for name, field in zip(schema.key, fields, strict=True)]
        only = reads[0]
        if len(reads) > 1:
            return lambda record: _ENCODER.encode([each(record) for each in reads])
        return lambda record: _ENCODER.encode(only(record)).strip(b'"')
    if len(fields) > 1:
        return lambda record: _ENCODER.encode(read(record))
    field = fields[0]
    if field is None or field.type == Scalar("text") or isinstance(field.type, Choice):
        return lambda record: read(record).encode()
    return lambda record: _ENCODER.encode(read(record)).strip(b'"')


def _reader(name: str, field: Field | None) -> Callable[[Any], Any]:
    """Return what reads a part of a key, in the one form that equal values have."""
    read: Callable[[Any], Any] = attrgetter(name)
    if field is None or field.type != _INSTANT:
        return read

    def read_instant(record: Any) -> Any:
        at = read(record)
        if not isinstance(at, datetime) or at.tzinfo is UTC:
            return at
        if at.tzinfo is None:
            raise ValueError(f"{at.isoformat()} has no time zone")
        return at.astimezone(UTC)

    return read_instant


def _refused_by_readers(error: DataError) -> DataError:
    null = ", got `null`" in error.message
    return DataError(
        f"its readers would refuse it: {error.message}",
        code="data.not-encodable",
        detail="a number that is not finite is null in JSON" if null else "",
    )


def _validation_code(text: str) -> str:
    if "missing required field" in text:
        return "data.missing-field"
    return "data.wrong-type" if ", got `" in text else "data.invalid-value"
