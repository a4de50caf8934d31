"""Headers of records that an operator writes: who withdrew them, whose event time they carry.

Where records are repartitioned, a partition of the new topic has records of many partitions of the
old one. Each says in a header which it came from, so that the reader's event time follows each of
them. A partition may also get no record for long: a **mark**, a record without key and value, then
says how far event time is there. Only streams between operators have marks.
"""

from collections.abc import Sequence

from penstock.core.instants import FIRST_MICROS, LAST_MICROS
from penstock.core.records.deadletter import HEADER_PREFIX

__all__ = [
    "SOURCE",
    "TIME",
    "WITHDRAWN",
    "deleted_at",
    "mark_headers",
    "read_mark",
    "source_headers",
    "source_of",
    "time_header",
]

Headers = Sequence[tuple[str, bytes | None]]

_MOST_DIGITS = 20

SOURCE = HEADER_PREFIX + "source"
TIME = HEADER_PREFIX + "event-time"
"""How far event time is, in a mark; when a row was deleted, in a deletion."""
WITHDRAWN = (HEADER_PREFIX + "withdrawn", b"true")
"""A record of a stream that takes an earlier result back."""


def source_headers(source: str) -> tuple[tuple[str, bytes], ...]:
    """Return the headers of a record that was repartitioned."""
    return ((SOURCE, source.encode()),)


def time_header(time: int) -> tuple[tuple[str, bytes], ...]:
    """Return the header of the deletion of a row, which says at which event time it was deleted."""
    return ((TIME, str(time).encode()),)


def deleted_at(headers: Headers | None) -> int | None:
    """Return the event time of a deletion; None: its writer has not said it."""
    for name, value in headers or ():
        if name == TIME:
            return _read_time(value)
    return None


def mark_headers(source: str, time: int) -> tuple[tuple[str, bytes], ...]:
    """Return the headers of a mark: event time is there in a source."""
    return ((SOURCE, source.encode()), *time_header(time))


def source_of(headers: Headers | None, otherwise: str) -> str:
    """Return the source of a record; of one that was not repartitioned its own partition."""
    for name, value in headers or ():
        if name == SOURCE and value:
            return value.decode()
    return otherwise


def read_mark(headers: Headers | None) -> tuple[str, int] | None:
    """Return the source and the event time of a mark; None: the record is none."""
    found = {name: value for name, value in headers or () if value is not None}
    source, time = found.get(SOURCE), _read_time(found.get(TIME))
    return None if source is None or time is None else (source.decode(), time)


def _read_time(text: bytes | None) -> int | None:
    """Return a time in microseconds; None: the text is none."""
    digits = (text or b"").removeprefix(b"-")
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        return None
    time = int(text or b"")
    return time if FIRST_MICROS <= time <= LAST_MICROS else None
