"""Headers of records that an operator writes: who withdrew them, whose event time they carry.

Where records are repartitioned, a partition of the new topic has records of many partitions of the
old one. Each says in a header which it came from, so that the reader's event time follows each of
them. A partition may also get no record for long: a **mark**, a record without key and value, then
says how far event time is there. Only streams between operators have marks.
"""

from collections.abc import Sequence

from penstock.core.records.deadletter import HEADER_PREFIX

__all__ = [
    "SOURCE",
    "TIME",
    "WITHDRAWN",
    "mark_headers",
    "read_mark",
    "source_headers",
    "source_of",
]

Headers = Sequence[tuple[str, bytes | None]]

SOURCE = HEADER_PREFIX + "source"
TIME = HEADER_PREFIX + "event-time"
"""How far event time is, in a mark; when a row was deleted, in a deletion."""
WITHDRAWN = (HEADER_PREFIX + "withdrawn", b"true")
"""A record of a stream that takes an earlier result back."""


def source_headers(source: str) -> tuple[tuple[str, bytes], ...]:
    """Return the headers of a record that was repartitioned."""
    return ((SOURCE, source.encode()),)


def mark_headers(source: str, time: int) -> tuple[tuple[str, bytes], ...]:
    """Return the headers of a mark: event time is there in a source."""
    return ((SOURCE, source.encode()), (TIME, str(time).encode()))


def source_of(headers: Headers | None, otherwise: str) -> str:
    """Return the source of a record; of one that was not repartitioned its own partition."""
    for name, value in headers or ():
        if name == SOURCE and value:
            return value.decode()
    return otherwise


def read_mark(headers: Headers | None) -> tuple[str, int] | None:
    """Return the source and the event time of a mark; None: the record is none."""
    found = {name: value for name, value in headers or () if value is not None}
    source, time = found.get(SOURCE), found.get(TIME)
    if source is None or time is None or not time.lstrip(b"-").isdigit():
        return None
    return source.decode(), int(time)
