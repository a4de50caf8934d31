"""What becomes of one item: a record for the log, nothing, or a reason why it is no record."""

from collections.abc import Callable
from typing import Any

import msgspec

from penstock.connectors.captured import Captured
from penstock.connectors.connector import Item
from penstock.core.graph.data import Output, Table
from penstock.core.graph.parts import Source
from penstock.core.records.codec import Codec, JsonCodec
from penstock.core.records.rowkey import row_of
from penstock.core.records.schema import Choice, Scalar
from penstock.errors import DataError
from penstock.machine.process.usercode import is_users, raised

__all__ = ["Intake", "LogEntry"]


_TEXT = Scalar("text")


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """A record as it goes onto the log."""

    key: bytes | None
    value: bytes | None
    """The record; nothing where the row of the key is to be deleted."""


class Intake:
    """The rule of one source from items to records.

    ``parse`` makes the record where the source has one: of the text of bytes, or of anything else
    as it is. Without it, bytes are a record's JSON, and anything else is the record.

    What it lets through is valid: whoever reads the stream can decode it. A record that ``parse``
    or a connector made is checked as strictly as one that came from a stranger.
    """

    def __init__(self, source: Source) -> None:
        self._into = source.into
        self._type = source.into.record
        self._codec: Codec[Any] = JsonCodec(
            source.into.record, max_bytes=source.into.topic.max_record_bytes
        )
        self._parse = source.parse
        fields = self._type.schema.fields
        self._null = {field.name for field in fields if field.nullable}
        """Fields for which an empty text means nothing."""

    def take(self, item: Item) -> LogEntry | None:
        """Return the item's record, None where ``parse`` skips it; DataError: it gives none."""
        if fault := item.fault():
            raise fault
        content = item.content
        if isinstance(content, Captured) and self._parse is None:
            return self._captured(content)
        if isinstance(content, dict) and self._parse is None:
            content = self._named(content)
        if self._parse is not None:
            record = self._parsed(self._parse, content)
        elif isinstance(content, bytes):
            record = self._codec.decode(content)
            return LogEntry(self._codec.key(record), self._codec.encode(record))
        else:
            record = self._of_type(content, "the connector")
        if record is None:
            return None
        if isinstance(record, Output):
            return self._deletion(record.row)
        value = self._codec.encode(record)
        return LogEntry(self._codec.key(self._codec.decode(value)), value)

    def _parsed(self, parse: Callable[[Any], Any], content: Any) -> Any:
        given = _text(content) if isinstance(content, bytes) else content
        try:
            record = parse(given)
        except BaseException as error:
            if not is_users(error):
                raise
            # Whatever it is, the end of the process included: the next line is another one.
            raise DataError(f"parse {raised(error)}", code="user.raised") from error
        return None if record is None else self._of_type(record, "parse")

    def _named(self, values: dict[str, Any]) -> Any:
        """Return the record of values by their names; texts may stand for other types."""
        fields = self._type.schema.fields
        texts = {
            each.name for each in fields if isinstance(each.type, Choice) or each.type == _TEXT
        }
        given = {
            name: value
            for name, value in values.items()
            if value != "" or name in texts - self._null
        }
        try:
            return msgspec.convert(given, self._type.cls, strict=False)
        except (msgspec.ValidationError, RecursionError, UnicodeError) as error:
            raise DataError(f"no {self._type.name}: {error}", code="data.wrong-type") from error

    def _captured(self, change: Captured) -> LogEntry:
        """Return the row of a change, or what deletes it."""
        if change.now is not None:
            try:
                record = msgspec.convert(change.now, self._type.cls)
            except (msgspec.ValidationError, RecursionError) as error:
                reason = f"a row of {change.table} is no {self._type.name}: {error}"
                raise DataError(reason, code="data.wrong-type") from error
            value = self._codec.encode(record)
            return LogEntry(self._codec.key(self._codec.decode(value)), value)
        if change.kind != "delete" or not isinstance(self._into, Table):
            reason = f"{self._into.kind} {self._into.name!r} cannot tell of this: {change.kind}"
            raise DataError(reason, code="source.no-row")
        before, schema = change.before or {}, self._type.schema
        key = tuple(before.get(name) for name in schema.key)
        try:
            return self._deletion(row_of(schema, key if len(key) > 1 else key[0]))
        except TypeError as error:
            reason = f"a deletion from {change.table}: {error}"
            raise DataError(reason, code="data.wrong-type") from error

    def _deletion(self, row: Any) -> LogEntry:
        """Return what deletes a row of the table."""
        return LogEntry(self._codec.key(row), None)

    def _of_type(self, record: Any, giver: str) -> Any:
        if isinstance(record, Output):
            if record.to == self._into and record.row is not None:
                return record
            reason = f"{giver} deletes a row of {record.to.name!r}, not of {self._into.name!r}"
            raise DataError(reason, code="data.wrong-type")
        if not isinstance(record, self._type.cls):
            reason = f"{giver} gave {type(record).__name__}, not {self._type.name}"
            raise DataError(reason, code="data.wrong-type")
        return record


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the line is not UTF-8: {error}", code="data.not-utf8") from error
