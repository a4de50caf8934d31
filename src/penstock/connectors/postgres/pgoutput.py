"""The messages of PostgreSQL's logical replication (``pgoutput``, version 1); no I/O.

A stream of changes consists of transactions, in the order of their commits: Begin, changes, Commit.
A Relation comes before the first change of a table, and again where its columns have changed.
"""

import struct
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from penstock.errors import TransientError

__all__ = [
    "UNCHANGED",
    "Begin",
    "Changed",
    "Column",
    "Commit",
    "Message",
    "Relation",
    "Truncated",
    "read_message",
]

_BEGIN = Struct("!QqI")
_COMMIT = Struct("!BQQq")
_NUMBER, _SHORT = Struct("!I"), Struct("!H")
_COLUMN = Struct("!Ii")

_TEXT, _NULL, _LEFT_OUT = b"tnu"

UNCHANGED = object()
"""Stands for a large value that an update did not change: the server leaves it out."""

Values: TypeAlias = list[Any]


class Begin(NamedTuple):
    """A transaction begins; all of it has been committed."""

    lsn: int
    """Where its commit is in the write-ahead log: its identity and its place among others."""
    at: int
    """When it was committed, in microseconds since 2000."""
    xid: int


class Commit(NamedTuple):
    """A transaction ends."""

    lsn: int
    end: int
    """Where the log goes on behind it."""


class Column(NamedTuple):
    """A column of a table, as it is from here on."""

    name: str
    type: int
    is_key: bool


class Relation(NamedTuple):
    """A table, as it is from here on."""

    id: int
    schema: str
    name: str
    columns: tuple[Column, ...]


class Changed(NamedTuple):
    """A row that was inserted, updated or deleted."""

    relation: int
    now: Values | None
    """The row; None: it is gone."""
    before: Values | None
    """The row before; None: the server does not say."""
    whole: bool = False
    """Whether ``before`` has all columns, or only those of the key."""
    updated: bool = False
    """Whether the row was there before."""


class Truncated(NamedTuple):
    """All rows of tables are gone."""

    relations: tuple[int, ...]


Message: TypeAlias = Begin | Commit | Relation | Changed | Truncated


def read_message(data: bytes) -> Message | None:
    """Return what a message says; None: nothing that matters here.

    TransientError where the bytes are none, so that the connection is opened anew.
    """
    try:
        return _read(data)
    except (IndexError, ValueError, struct.error) as error:
        raise _broken(data) from error


def _broken(data: bytes) -> TransientError:
    return TransientError(f"no message of pgoutput: {data[:40]!r}", code="postgres.protocol")


def _read(data: bytes) -> Message | None:
    kind = data[:1]
    if kind == b"C":
        _flags, lsn, end, _at = _COMMIT.unpack_from(data, 1)
        return Commit(lsn, end)
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        (count,) = _NUMBER.unpack_from(data, 1)
        return Truncated(
            tuple(_NUMBER.unpack_from(data, 6 + 4 * number)[0] for number in range(count))
        )
    return _read_change(data)


def _read_change(data: bytes) -> Message | None:
    match data[:1]:
        case b"I":
            now, _ = _row(data, 6)
            return Changed(_NUMBER.unpack_from(data, 1)[0], now, None)
        case b"U":
            return _updated(data)
        case b"D":
            before, _ = _row(data, 6)
            return Changed(_NUMBER.unpack_from(data, 1)[0], None, before, whole=data[5:6] == b"O")
        case b"B":
            return Begin(*_BEGIN.unpack_from(data, 1))
    return None


def _updated(data: bytes) -> Changed:
    (relation,) = _NUMBER.unpack_from(data, 1)
    kind, before, at = data[5:6], None, 6
    if kind != b"N":
        before, at = _row(data, 6)
        at += 1
    now, _ = _row(data, at)
    return Changed(relation, now, before, whole=kind == b"O", updated=True)


def _row(data: bytes, at: int) -> tuple[Values, int]:
    """Return the values of a row that begins at a place, and where it ends."""
    (count,) = _SHORT.unpack_from(data, at)
    at += 2
    values: Values = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == _TEXT:
            (length,) = _NUMBER.unpack_from(data, at)
            at += 4 + length
            if at > len(data):
                raise ValueError("cut off")
            values.append(data[at - length : at])
        elif kind == _NULL:
            values.append(None)
        elif kind == _LEFT_OUT:
            values.append(UNCHANGED)
        else:
            raise ValueError("no such kind of value")
    return values, at


def _relation(data: bytes) -> Relation:
    (number,) = _NUMBER.unpack_from(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    at += 1  # the replica identity
    (count,) = _SHORT.unpack_from(data, at)
    at += 2
    columns = []
    for _ in range(count):
        is_key = bool(data[at] & 1)
        column, at = _text(data, at + 1)
        kind, _modifier = _COLUMN.unpack_from(data, at)
        at += 8
        columns.append(Column(column, kind, is_key))
    return Relation(number, schema or "pg_catalog", name, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1
