"""Dead letters that no broker would take as they are: cut until they fit, and saying so.

A dead letter is its record with more headers, so it is larger; and a record that came compressed
may be far larger than what a broker takes. It must be written all the same: otherwise one record
would end whoever reads it, at every start.
"""

from collections.abc import Iterable
from typing import NamedTuple

from penstock.backbone.client.logrecord import Headers
from penstock.core.records.deadletter import HEADER_PREFIX

__all__ = ["CUT_HEADER", "Letter", "fitted", "is_letter", "size_of"]

CUT_HEADER = HEADER_PREFIX + "cut"
"""What was cut, with the bytes that it had."""
_REASON_HEADER = HEADER_PREFIX + "reason"
_BATCH_BYTES = 512
"""Room for what Kafka puts around the record of a batch."""
_HEADER_BYTES = 10
"""Room for the lengths of a header."""
_SHARE = 4
"""A key, or the record's own headers, are left out above this part of the room."""


class Letter(NamedTuple):
    """Key, value and headers of a dead letter."""

    key: bytes | None
    value: bytes | None
    headers: Headers


def is_letter(headers: Headers) -> bool:
    """Return whether these are the headers of a dead letter."""
    return any(name == _REASON_HEADER for name, _ in headers)


def size_of(letter: Letter) -> int:
    """Return how many bytes a letter takes on the log, at most."""
    own = len(letter.key or b"") + len(letter.value or b"")
    return own + _size(letter.headers) + _BATCH_BYTES


def fitted(letter: Letter, most: int) -> Letter:
    """Return a dead letter that takes at most so many bytes: the value loses its end first.

    Headers of the record, and a key, are left out where they would leave no room for the value.
    The header ``penstock.cut`` has the original sizes. What fits is returned as it is.
    """
    if size_of(letter) <= most:
        return letter
    key, value, cut = letter.key, letter.value or b"", []
    marks = [each for each in letter.headers if each[0].startswith(HEADER_PREFIX)]
    own = [each for each in letter.headers if not each[0].startswith(HEADER_PREFIX)]
    room = most - _BATCH_BYTES - _size(marks) - _size([(CUT_HEADER, b"_" * 100)])
    if _size(own) > room // _SHARE:
        cut.append(f"headers {_size(own)}")
        own = []
    if len(key or b"") > room // _SHARE:
        cut.append(f"key {len(key or b'')}")
        key = None
    left = max(0, room - _size(own) - len(key or b""))
    if len(value) > left:
        cut.append(f"value {len(value)}")
        value = value[:left]
    told = (CUT_HEADER, ", ".join(cut).encode())
    return Letter(key, None if letter.value is None else value, [*own, *marks, told])


def _size(headers: Iterable[tuple[str, str | bytes | None]]) -> int:
    return sum(len(name.encode()) + _length(value) + _HEADER_BYTES for name, value in headers)


def _length(value: str | bytes | None) -> int:
    return len(value.encode() if isinstance(value, str) else value or b"")
