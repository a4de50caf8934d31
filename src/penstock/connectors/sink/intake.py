"""From a record on the log to a row for the outside system; DataError: it is no record."""

from typing import Any

from penstock.backbone.client.logrecord import RawRecord
from penstock.connectors.connector import Row, RowChange
from penstock.core.graph.data import OnLog, Table
from penstock.core.operators.marks import WITHDRAWN
from penstock.core.records.codec import Codec, JsonCodec
from penstock.core.records.deadletter import HEADER_PREFIX
from penstock.core.records.keyreader import key_reader

__all__ = ["Intake"]

_WITHDRAWN = frozenset({WITHDRAWN, (HEADER_PREFIX + "pane.withdrawn", b"true")})
"""What a record says that takes an earlier result back: of an operator, or a pane."""


class Intake:
    """The rule of one sink from records to rows."""

    def __init__(self, reads: OnLog) -> None:
        self._codec: Codec[Any] = JsonCodec(reads.record, max_bytes=reads.topic.max_record_bytes)
        self._key_of = key_reader(reads.record.schema) if isinstance(reads, Table) else None

    def take(self, raw: RawRecord, offset: int) -> Row:
        """Return the row of a record."""
        key, value = raw.key(), raw.value()
        headers = tuple(raw.headers() or ())
        if value is None and self._key_of is not None:
            return Row(self._key_of(key), b"", offset, "delete", key, headers)
        record = self._codec.accept(key, value)
        taken_back = self._key_of is None and not _WITHDRAWN.isdisjoint(headers)
        change: RowChange = "withdraw" if headers and taken_back else "add"
        return Row(record, self._in_utf8(value or b"", record), offset, change, key, headers)

    def _in_utf8(self, value: bytes, record: Any) -> bytes:
        """Return the record as it stands on the log; what it declares, if the rest is no text.

        Fields that nobody declared are not looked at by the codec, and may hold any bytes.
        """
        try:
            value.decode()
        except UnicodeDecodeError:
            return self._codec.encode(record)
        return value
