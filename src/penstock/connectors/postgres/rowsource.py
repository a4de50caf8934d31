"""Rows that are added to a table of PostgreSQL as a source, by a column that grows.

Numbers are given before transactions commit, so a smaller one may appear after a larger one. A row
is therefore read only when everybody has ended who was writing to the table when its number was
seen: nobody is locked out, and no row is passed over.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from penstock.connectors.connector import WHOLE, Item, Position
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.postgres.address import Address, client, explained, read_address
from penstock.connectors.postgres.rows import KEY_TYPES, use_plain_values
from penstock.connectors.postgres.table import read_table
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from psycopg import Connection, sql

__all__ = ["PostgresRows", "postgres_rows"]

_AT_ONCE = 1_000


class TableRow(Item, frozen=True):
    """A row by the names of its columns, and the number that it has."""

    number: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresRows:
    """A table of PostgreSQL whose rows are only added; :func:`postgres_rows` makes it."""

    table: tuple[str, ...]
    column: str
    address: Address
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: Literal[False] = field(default=False, init=False)

    def describe(self) -> str:
        """Return what it reads, for people."""
        return f"rows of {'.'.join(self.table)} in PostgreSQL by {self.column}"

    @contextmanager
    def attach(self) -> Iterator["Rows"]:
        """Connect, until it is closed."""
        connection = self.address.connect("penstock source")
        try:
            yield Rows(self, connection)
        finally:
            connection.close()

    def open(self, split: str, position: Position | None) -> "RowsReading":
        """Read without being attached; see :meth:`attach`."""
        connection = self.address.connect("penstock source")
        try:
            return RowsReading(self, connection, split, position, owns=True)
        except BaseException:
            connection.close()
            raise

    def attempt(self, part: Source | Sink) -> str:
        """Connect, and look at the column."""
        connection = self.address.connect(f"penstock source {part.name}")
        with explained(), connection:
            kind = column_type(connection, self.table, self.column)
        return f"{self.column} is a unique {kind}"


class Rows:
    """A table that is read over one connection."""

    grows = True

    def __init__(self, spec: PostgresRows, connection: "Connection[Any]") -> None:
        self._spec, self._connection = spec, connection

    def splits(self) -> Sequence[str]:
        """Return the only split."""
        return (WHOLE,)

    def open(self, split: str, position: Position | None) -> "RowsReading":
        """Go on behind a number."""
        return RowsReading(self._spec, self._connection, split, position)


class RowsReading:
    """One pass over a table."""

    ended = False

    def __init__(
        self,
        spec: PostgresRows,
        connection: "Connection[Any]",
        split: str,
        position: Position | None,
        *,
        owns: bool = False,
    ) -> None:
        self._owns = owns
        if split != WHOLE or not isinstance(position, str | None):
            raise ConfigurationError(
                f"{position!r} is no position of a table's rows", code="source.position"
            )
        self._connection, self._last = connection, position
        self._bound: str | None = None
        self._writers: set[str] = set()
        self._count = 0
        with explained():
            use_plain_values(connection.adapters)
            kind = column_type(connection, spec.table, spec.column)
        self._texts = self._prepare(spec, kind)
        self._name = client().sql.Identifier(*spec.table).as_string()

    def read(self) -> list[TableRow]:
        """Return the next rows that nobody can come before any more."""
        with explained():
            if self._bound is None:
                self._look()
            if self._bound is None or self._under_way():
                return []
            found = self._fetch(self._bound)
        if len(found) < _AT_ONCE:
            self._bound = None
        return found

    def position_after(self, item: Item) -> Position:
        """Return the number of a row."""
        if not isinstance(item, TableRow):
            raise TypeError("no row of a table")
        return item.number

    def close(self) -> None:
        """Close the connection, unless others have it too."""
        if self._owns:
            self._connection.close()

    def _prepare(self, spec: PostgresRows, kind: str) -> dict[str, "sql.Composed"]:
        sql = client().sql
        table, column = sql.Identifier(*spec.table), sql.Identifier("t", spec.column)
        order = sql.SQL("{}" + KEY_TYPES[kind]).format(column)
        value = sql.SQL("%s::{}" + KEY_TYPES[kind]).format(sql.Identifier(kind))
        behind = sql.SQL("(%s::text IS NULL OR {} > {})").format(order, value)
        largest = sql.SQL("SELECT {}::text FROM {} t WHERE {} ORDER BY {} DESC LIMIT 1")
        rows = sql.SQL("SELECT {}::text, t.* FROM {} t WHERE {} AND {} <= {} ORDER BY {} LIMIT {}")
        return {
            "largest": largest.format(column, table, behind, order),
            "rows": rows.format(column, table, behind, order, value, order, _AT_ONCE),
        }

    def _look(self) -> None:
        """Take note of the largest number that is there, and then of who is writing."""
        run = self._connection.execute
        row = run(self._texts["largest"], [self._last, self._last]).fetchone()
        self._bound = row[0] if row else None
        self._writers = self._now_writing() if self._bound is not None else set()

    def _under_way(self) -> bool:
        """Return whether anybody who was writing then still is."""
        if self._writers:
            self._writers &= self._now_writing()
        return bool(self._writers)

    def _now_writing(self) -> set[str]:
        rows = self._connection.execute(
            "SELECT virtualtransaction FROM pg_locks WHERE relation = to_regclass(%s)"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND mode NOT IN ('AccessShareLock', 'RowShareLock') AND pid <> pg_backend_pid()",
            [self._name],
        ).fetchall()
        return {name for (name,) in rows}

    def _fetch(self, bound: str) -> list[TableRow]:
        cursor = self._connection.execute(self._texts["rows"], [self._last, self._last, bound])
        names = [column.name for column in (cursor.description or [])[1:]]
        found = []
        for number, *values in cursor.fetchall():
            found.append(TableRow(dict(zip(names, values, strict=True)), self._count, number))
            self._count += 1
        if found:
            self._last = found[-1].number
        return found


def column_type(connection: "Connection[Any]", table: tuple[str, ...], column: str) -> str:
    """Return the type of the column; ConfigurationError where rows cannot be read by it."""
    name = client().sql.Identifier(*table).as_string()
    row = connection.execute(
        "SELECT y.typname, a.attnotnull FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid"
        " JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisunique AND i.indpred IS NULL"
        " AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum"
        " WHERE a.attrelid = to_regclass(%s) AND a.attname = %s",
        [name, column],
    ).fetchone()
    if row is None or not row[1] or row[0] not in KEY_TYPES:
        raise ConfigurationError(
            f"{'.'.join(table)} has no column {column!r} that is unique, not null and ordered",
            code="source.unfit",
            hint="name another column, or follow the table's changes: postgres_changes(...)",
        )
    return str(row[0])


def postgres_rows(
    table: str,
    *,
    column: str,
    address: str,
    password: str | None = None,
    timeout: str | timedelta = "60s",
) -> PostgresRows:
    """Read the rows that are added to a table of PostgreSQL, exactly once, by a column that grows.

    It asks for rows with larger numbers again and again. It reads a row when every transaction has
    ended that was writing to the table when its number was first seen, so a row that is committed
    late is not passed over; a transaction that stays open holds the source up. Updates and
    deletions are not seen: ``postgres_changes`` follows these. It needs ``penstock[postgres]``, and
    only the right to read.

    Args:
        table: Its name, with that of its schema if that is not in the search path.
        column: The column that grows: unique, not null; given when the row is inserted (``serial``,
            ``identity``).
        address: A connection string of libpq without a password, or a reference to one.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        timeout: How long one statement may take.

    Examples:
        >>> added = postgres_rows("events", column="id", address="postgresql://app@db/shop")
        >>> app.source("events", added, into=hot).summary
        'source, rows of events in PostgreSQL by id'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("postgres_rows", problems)
    name = options.text("column", column, "unknown", 'column="id", for example')
    if not name or "\0" in name:
        options.wrong("column", f"{column!r} is no column's name", 'column="id", for example')
    return PostgresRows(
        table=read_table(options, table),
        column=name,
        address=read_address(options, address, password, timeout),
        problems=tuple(problems),
    )
