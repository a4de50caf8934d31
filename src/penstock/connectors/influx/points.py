"""From a record to a line of Influx line protocol; no I/O.

What one server reads otherwise than another is refused rather than written: the protocol has no
way to write the end of a line, and none to write a backslash in a tag, that all of them share.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

from penstock.errors import DataError

__all__ = ["Points", "writable_name"]

_NANOSECONDS = 1_000
"""In a microsecond."""
_EARLIEST, _LATEST = -(1 << 63) + 2, (1 << 63) - 2
"""The nanoseconds of the earliest and of the latest point, as InfluxDB bounds them."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_IN_NAME = str.maketrans({",": r"\,", " ": r"\ "})
_IN_TAG = str.maketrans({",": r"\,", "=": r"\=", " ": r"\ "})
_IN_TEXT = str.maketrans({"\\": r"\\", '"': r"\""})
_LINE_ENDS = ("\n", "\r")


class Points:
    """The lines of one measurement; ``time`` reads the microseconds of a record since 1970."""

    def __init__(
        self,
        *,
        measurement: str,
        tags: tuple[str, ...],
        fields: tuple[str, ...],
        time: Callable[[Any], int],
    ) -> None:
        self._head = measurement.translate(_IN_NAME)
        self._tags = tuple((name, name.translate(_IN_TAG)) for name in sorted(tags))
        self._fields = tuple((name, name.translate(_IN_TAG)) for name in fields)
        self._time = time

    def line(self, record: Any) -> bytes:
        """Return the line of a record, with its end; DataError: the protocol cannot say it."""
        at = self._time(record) * _NANOSECONDS
        if not _EARLIEST <= at <= _LATEST:
            raise _refused("its time is outside 1677 to 2262, the years that nanoseconds reach")
        series = self._head
        for name, key in self._tags:
            if value := _tag(name, getattr(record, name)):
                series = f"{series},{key}={value}"
        values = [
            f"{key}={written}"
            for name, key in self._fields
            if (written := _field(name, getattr(record, name))) is not None
        ]
        if not values:
            raise _refused("no field has a value, and a point has at least one")
        try:
            return f"{series} {','.join(values)} {at}\n".encode()
        except UnicodeEncodeError as error:
            raise _refused(f"it has text that is no Unicode: {error.reason}") from error


def writable_name(name: str) -> bool:
    """Return whether every server takes this as the name of a measurement."""
    plain = all(each.isprintable() and each != "\\" for each in name)
    return bool(name) and plain and not name.startswith(("#", "_"))


def _tag(name: str, value: Any) -> str:
    """Return a tag as it is written; empty: it is left out."""
    text = _text(name, _plain(value))
    if any(each < " " or each in "\\\x7f" for each in text):
        raise _refused(f"tag {name} has a backslash or a control character")
    return text.translate(_IN_TAG)


def _text(name: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float) and not math.isfinite(value):
        raise _refused(f"{name} is {value}")
    return _json(value)


def _field(name: str, value: Any) -> str | None:
    """Return a field as it is written; None: it is left out."""
    value = _plain(value)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not _LEAST <= value <= _MOST:
            raise _refused(f"{name} has more than 64 bits")
        return f"{value:d}i"
    if isinstance(value, float | Decimal):
        return _number(name, value)
    text = value if isinstance(value, str) else _json(value)
    if any(each in text for each in _LINE_ENDS):
        raise _refused(f"{name} has the end of a line inside, which line protocol cannot say")
    return f'"{text.translate(_IN_TEXT)}"'


def _number(name: str, value: float | Decimal) -> str:
    finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    if not finite:
        raise _refused(f"{name} is {value}, and a point takes finite numbers only")
    number = float(value)
    if math.isinf(number):
        raise _refused(f"{name} is larger than a float of 64 bits can be")
    return repr(number)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _json(value: Any) -> str:
    """Return anything else as JSON; a text in JSON without its quotes."""
    encoded = msgspec.json.encode(value)
    return str(msgspec.json.decode(encoded)) if encoded[:1] == b'"' else encoded.decode()


def _refused(words: str) -> DataError:
    return DataError(f"no line protocol: {words}", code="sink.refused")
