"""What becomes of one line: a record for the log, nothing, or a reason why it is no record."""

from collections.abc import Callable
from typing import Any

import msgspec

from penstock.connectors.lines import Line
from penstock.core.graph.parts import Source
from penstock.core.records.codec import Codec, JsonCodec
from penstock.errors import DataError

__all__ = ["Entry", "Intake"]


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A record as it goes onto the log."""

    key: bytes | None
    value: bytes


class Intake:
    """The rule of one source from lines to records: its ``parse``, or JSON where it has none.

    What it lets through is valid: whoever reads the stream can decode it. A record made by
    ``parse`` is checked as strictly as one that came from a stranger.
    """

    def __init__(self, source: Source) -> None:
        self._type = source.into.record
        self._codec: Codec[Any] = JsonCodec(
            source.into.record, max_bytes=source.into.topic.max_record_bytes
        )
        self._parse = source.parse

    def take(self, line: Line) -> Entry | None:
        """Return the line's record, None where ``parse`` skips it; DataError: it gives none."""
        if line.too_long:
            text = (
                f"the line has {line.length} bytes, {len(line.content)} are allowed and kept here"
            )
            raise DataError(text, code="data.line-too-long")
        if not line.complete:
            text = f"the line ends after {line.length} bytes without a line end"
            raise DataError(text, code="data.half-line")
        if self._parse is None:
            record = self._codec.decode(line.content)
            return Entry(self._codec.key(record), self._codec.encode(record))
        record = self._parsed(self._parse, line.content)
        if record is None:
            return None
        value = self._codec.encode(record)
        return Entry(self._codec.key(self._codec.decode(value)), value)

    def _parsed(self, parse: Callable[[str], Any], content: bytes) -> Any:
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"the line is not UTF-8: {error}", code="data.not-utf8") from error
        try:
            record = parse(text)
        except Exception as error:
            reason = f"parse raised {type(error).__name__}: {error}"
            raise DataError(reason, code="user.raised") from error
        if record is not None and not isinstance(record, self._type.cls):
            reason = f"parse gave {type(record).__name__}, not {self._type.name}"
            raise DataError(reason, code="data.wrong-type")
        return record
