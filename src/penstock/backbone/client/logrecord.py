"""A record as the log holds it: bytes with coordinates."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

import msgspec

__all__ = ["Headers", "LogRecord", "Offsets", "Partition", "RawRecord", "log_record"]

Partition: TypeAlias = tuple[str, int]
"""A topic and the number of one of its partitions."""

Offsets: TypeAlias = Mapping[Partition, int]
"""For each partition the offset of the next record to read."""

Headers: TypeAlias = Sequence[tuple[str, str | bytes | None]]


class RawRecord(Protocol):
    """A record as the client returns it: every part is a call, nothing is copied.

    What hot loops read: a :class:`LogRecord` costs 0.6 µs, these calls 20 ns each.
    """

    def topic(self) -> str | None:
        """Return the topic."""

    def partition(self) -> int | None:
        """Return the number of the partition."""

    def offset(self) -> int | None:
        """Return the offset in the partition."""

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of the timestamp (0: none) and milliseconds since the epoch."""

    def key(self) -> bytes | None:
        """Return the key."""

    def value(self) -> bytes | None:
        """Return the value; None deletes the key from a table."""

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None:
        """Return the headers, None if there are none."""


class LogRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One record of one partition, with its place in the log."""

    topic: str
    partition: int
    offset: int
    timestamp_at: datetime | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def log_record(raw: RawRecord) -> LogRecord:
    """Return the record as a value."""
    kind, milliseconds = raw.timestamp()
    return LogRecord(
        topic=raw.topic() or "",
        partition=raw.partition() or 0,
        offset=raw.offset() or 0,
        timestamp_at=datetime.fromtimestamp(milliseconds / 1000, UTC) if kind else None,
        key=raw.key(),
        value=raw.value(),
        headers=tuple(raw.headers() or ()),
    )
