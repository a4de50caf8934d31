"""Streams of Redis or Valkey as a source: each entry once, by its identifier."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from penstock.connectors.connector import Item, Position
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.redis.address import Address, client, explained, read_address
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["RedisStreams", "redis_stream"]

_AT_ONCE = 1_000
_MOST_STREAMS = 100
_ID = re.compile(r"\d{1,20}-\d{1,20}")


class StreamEntry(Item, frozen=True):
    """An entry of a stream: its fields as texts, and its identifier."""

    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisStreams:
    """Streams of Redis; :func:`redis_stream` makes it."""

    streams: tuple[str, ...]
    address: Address
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: Literal[False] = field(default=False, init=False)

    def describe(self) -> str:
        """Return what it reads, for people."""
        return f"stream{'s'[: len(self.streams) > 1]} {', '.join(self.streams)} of Redis"

    @contextmanager
    def attach(self) -> Iterator["Streams"]:
        """Connect, until it is closed."""
        connection = self.address.connect("penstock source")
        try:
            yield Streams(self.streams, connection)
        finally:
            connection.close()

    def open(self, split: str, position: Position | None) -> "StreamReading":
        """Read without being attached; see :meth:`attach`."""
        return StreamReading(self.address.connect("penstock source"), split, position)

    def attempt(self, part: Source | Sink) -> str:
        """Connect, and count the entries."""
        connection = self.address.connect(f"penstock source {part.name}")
        try:
            with explained():
                counts = [f"{each}: {connection.xlen(each)} entries" for each in self.streams]
        finally:
            connection.close()
        return ", ".join(counts)


class Streams:
    """Streams that are read over one connection."""

    grows = True

    def __init__(self, streams: Sequence[str], connection: "Redis") -> None:
        self._streams, self._connection = streams, connection
        self._readings: list[StreamReading] = []

    def splits(self) -> Sequence[str]:
        """Return the names of the streams."""
        return self._streams

    def open(self, split: str, position: Position | None) -> "StreamReading":
        """Go on behind an entry."""
        reading = StreamReading(self._connection, split, position)
        self._readings.append(reading)
        return reading

    def complaint(self) -> str:
        """Return what was lost, if anything."""
        return "; ".join(filter(None, (reading.complaint for reading in self._readings)))

    def facts(self) -> Mapping[str, str]:
        """Return nothing: the counts say it."""
        return {}


class StreamReading:
    """One pass over one stream."""

    ended = False

    def __init__(self, connection: "Redis", stream: str, position: Position | None) -> None:
        self._connection, self._stream = connection, stream
        self.complaint = ""
        self._count = 0
        self._last = "0-0" if position is None else str(position)
        if not _ID.fullmatch(self._last):
            raise ConfigurationError(
                f"{position!r} is no identifier of an entry",
                code="source.position",
                hint="another connector wrote it: give the source another name",
            )
        if position is not None:
            self._require_same_stream()

    def read(self) -> list[StreamEntry]:
        """Return the next entries."""
        with explained():
            found: Any = self._connection.xread({self._stream: self._last}, count=_AT_ONCE)
        entries = [
            self._entry(name, fields) for _, several in found or () for name, fields in several
        ]
        if entries:
            self._last = entries[-1].id
        return entries

    def position_after(self, item: Item) -> Position:
        """Return the identifier of an entry."""
        if not isinstance(item, StreamEntry):
            raise TypeError("no entry of a stream")
        return item.id

    def close(self) -> None:
        """Leave the connection to whoever opened it."""

    def _entry(self, name: bytes, fields: Mapping[bytes, bytes]) -> StreamEntry:
        self._count += 1
        content = {_text(field): _text(value) for field, value in fields.items()}
        return StreamEntry(content, self._count - 1, _text(name))

    def _require_same_stream(self) -> None:
        """Refuse a stream that was made again, and complain of entries that were never read."""
        redis = client()
        with explained():
            try:
                about: Any = self._connection.xinfo_stream(self._stream)
            except redis.ResponseError as error:
                if "no such key" not in str(error):
                    raise
                return
        ends = _text(about["last-generated-id"])
        if _order(ends) < _order(self._last):
            raise ConfigurationError(
                f"stream {self._stream} ends at {ends}, and was read up to {self._last}",
                code="source.beyond-end",
                hint="it was made again: give the source another name, and it begins anew",
            )
        first = about["first-entry"]
        oldest = _text(first[0]) if first else ends
        if _order(oldest) > _order(self._last):
            self.complaint = (
                f"{self._stream} was trimmed up to {oldest}, and read up to {self._last}:"
                " entries between them may be lost"
            )


def redis_stream(
    streams: str | tuple[str, ...],
    *,
    address: str,
    password: str | None = None,
    timeout: str | timedelta = "10s",
) -> RedisStreams:
    """Read the entries of streams of Redis or Valkey, exactly once.

    An entry gives its fields as texts: ``parse`` gets a dict, and without it they are the fields of
    the record by their names. The position is the identifier of the last entry, committed with the
    records; no consumer group is needed. Entries that are trimmed before they were read are lost:
    at its next start the source is degraded then, and says so. It needs ``penstock[redis]``.

    Args:
        streams: The name of the stream, or several in a tuple; each keeps its own position.
        address: Where the server is, without a password: ``rediss://cache.example:6379/0`` (TLS) or
            ``redis://``. Or a reference to an address.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        timeout: How long connecting may take, and each answer.

    Examples:
        >>> clicks = redis_stream("clicks", address="redis://cache:6379")
        >>> app.source("clicks", clicks, into=readings).summary
        'source, stream clicks of Redis'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("redis_stream", problems)
    given: Any = streams
    names = (given,) if isinstance(given, str) else given
    fits = isinstance(names, tuple | list) and 0 < len(names) <= _MOST_STREAMS
    if not fits or not all(isinstance(each, str) and each for each in names):
        options.wrong("streams", f"{given!r} names no stream", 'redis_stream("clicks")')
        names = ("unknown",)
    return RedisStreams(
        streams=tuple(dict.fromkeys(names)),
        address=read_address(options, address, password, timeout),
        problems=tuple(problems),
    )


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _order(identifier: str) -> tuple[int, int]:
    first, _, second = identifier.partition("-")
    return int(first), int(second or 0)
