"""Writes batches to a table of PostgreSQL, each in one transaction with the position behind it.

Rows go through COPY: into the table itself where they are appended, else into a temporary table,
from which one statement brings them where they belong. A refused batch is tried again in halves
under savepoints, until the refused rows are known; then everything is taken back.

Two things keep a second run out: a lock that the server holds for the connection, and the position,
which is written only where it is still what this run has read.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from penstock.connectors.connector import Row, RowsRefusedError
from penstock.connectors.postgres.address import Address, client, explained
from penstock.connectors.postgres.columns import column_type, create_table, names_in, values_reader
from penstock.core.records.schema import Schema
from penstock.errors import ConfigurationError, TransientError

if TYPE_CHECKING:
    from psycopg import Connection, Error, sql

__all__ = ["POSITIONS", "PostgresSinkTarget", "TableWriter"]

POSITIONS = "penstock_positions"
"""The table of positions, in the schema where the rows go."""

_STAGE, _GONE = "penstock_stage", "penstock_gone"
_REFUSED = ("22", "23", "44", "P0001")
"""Classes of SQLSTATE that speak of a row: a value that does not fit, a constraint, a trigger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSinkTarget:
    """What one sink writes, and where."""

    sink: str
    topic: str
    schema: Schema
    table: tuple[str, ...]
    key: tuple[str, ...]
    """Empty: every record is a row of its own."""
    create: bool


class TableWriter:
    """One connection that writes for one sink."""

    def __init__(self, target: PostgresSinkTarget, address: Address) -> None:
        from_library = client()
        self._sql = from_library.sql
        self._target = target
        self._columns = [field.name for field in target.schema.fields]
        self._values = values_reader(target.schema)
        self._key_of = attrgetter(*target.key) if target.key else None
        self._table: sql.Identifier = self._sql.Identifier(*target.table)
        self._positions: sql.Identifier = self._sql.Identifier(*target.table[:-1], POSITIONS)
        self._written: dict[int, int] = {}
        self._statements: dict[str, sql.Composed] = {}
        self._connection: Connection[Any] = address.connect(f"penstock sink {target.sink}")

    def prepare(self) -> None:
        """Make what is to be there, keep others out, and read what was written."""
        with explained():
            self._make()
        if missing := self._missing():
            raise self._unfit(missing)
        with explained():
            self._lock()
            self._stage()
            self._written = self._read_positions()

    def inspect(self) -> str:
        """Return what the server says of the table; ConfigurationError where rows do not fit."""
        with explained():
            version = self._connection.info.parameter_status("server_version")
            there = self._exists()
        name = ".".join(self._target.table)
        if not there and self._target.create:
            return f"PostgreSQL {version}, and {name} will be made"
        if missing := self._missing():
            raise self._unfit(missing)
        return f"PostgreSQL {version}, and {name} is there"

    def positions(self) -> dict[int, int]:
        """Return for each partition the offset behind what was written."""
        return dict(self._written)

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
        """Write rows and position; RowsRefusedError where the server does not take some of them."""
        psycopg = client()
        try:
            with self._connection.transaction():
                self._apply(rows)
                self._keep(partition, position)
        except psycopg.Error as error:
            if _speaks_of_rows(error):
                raise RowsRefusedError(self._refused(rows)) from error
            with explained():
                raise
        self._written[partition] = position

    def close(self) -> None:
        """Close the connection; the server gives its lock back."""
        with suppress(Exception):  # what was not committed is not there; nothing is left to do
            self._connection.close()

    def _make(self) -> None:
        sql, run = self._sql, self._connection.execute
        if self._target.create and not self._exists():
            run(create_table(self._table, self._target.schema, self._target.key))
        if run("SELECT to_regclass(%s)", [self._positions.as_string()]).fetchone() == (None,):
            run(
                sql.SQL(
                    "CREATE TABLE IF NOT EXISTS {} (sink text, target text, topic text,"
                    " partition int, position bigint NOT NULL, written_at timestamptz NOT NULL,"
                    " PRIMARY KEY (sink, target, topic, partition))"
                ).format(self._positions)
            )

    def _exists(self) -> bool:
        query = "SELECT to_regclass(%s)"
        return self._connection.execute(query, [self._table.as_string()]).fetchone() != (None,)

    def _missing(self) -> list[str]:
        """Return what the table lacks for such records, in words."""
        if not self._exists():
            return ["there is no such table"]
        query = (
            "SELECT attname FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        )
        found = {name for (name,) in self._connection.execute(query, [self._table.as_string()])}
        return [f"it has no column {name!r}" for name in self._columns if name not in found]

    def _unfit(self, missing: list[str]) -> ConfigurationError:
        name, schema = ".".join(self._target.table), self._target.schema
        columns = ", ".join(f"{each.name} {column_type(each.type)}" for each in schema.fields)
        return ConfigurationError(
            f"table {name} does not take {schema.name}: {missing[0]}",
            code="sink.unfit",
            detail="\n  ".join([*missing, f"its columns would be: {columns}"]),
            hint="alter the table, or let it be made where there is none: create=True",
        )

    def _lock(self) -> None:
        """Let no other run of this sink write, as long as this connection lives."""
        name = "\0".join((self._target.sink, *self._target.table)).encode()
        taken = self._connection.execute(
            "SELECT pg_try_advisory_lock(hashtextextended(encode(%s, 'hex'), 0))", [name]
        ).fetchone()
        if taken != (True,):
            raise TransientError(
                f"another run of {self._target.sink} writes to {'.'.join(self._target.table)}",
                code="sink.taken",
                hint="it goes on when the other run has ended",
            )

    def _stage(self) -> None:
        """Make the temporary tables of this connection, and the statements that empty them."""
        if not self._target.key:
            return
        sql, key = self._sql, names_in(self._target.key)
        for name, columns in ((_STAGE, names_in(self._columns)), (_GONE, key)):
            self._connection.execute(
                sql.SQL(
                    "CREATE TEMP TABLE {} ON COMMIT DELETE ROWS AS SELECT {} FROM {} WITH NO DATA"
                ).format(sql.Identifier(name), columns, self._table)
            )
        rest = [name for name in self._columns if name not in self._target.key]
        changed = sql.SQL(", ").join(
            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in rest
        )
        merge = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} ON CONFLICT ({}) DO ").format(
            self._table, *[names_in(self._columns)] * 2, sql.Identifier(_STAGE), key
        )
        update = sql.SQL("UPDATE SET {}").format(changed) if rest else sql.SQL("NOTHING")
        self._statements["merge"] = merge + update
        self._statements["delete"] = sql.SQL("DELETE FROM {} t USING {} g WHERE {}").format(
            self._table,
            sql.Identifier(_GONE),
            sql.SQL(" AND ").join(
                sql.SQL("t.{0} = g.{0}").format(sql.Identifier(name)) for name in self._target.key
            ),
        )

    def _read_positions(self) -> dict[int, int]:
        query = self._sql.SQL(
            "SELECT partition, position FROM {} WHERE sink = %s AND target = %s AND topic = %s"
        ).format(self._positions)
        return dict(self._connection.execute(query, self._identity()).fetchall())

    def _identity(self) -> tuple[str, str, str]:
        return self._target.sink, ".".join(self._target.table), self._target.topic

    def _keep(self, partition: int, position: int) -> None:
        """Write the position, if it is still what this run believes."""
        known = self._written.get(partition)
        if known is None:
            text = "INSERT INTO {} VALUES (%s, %s, %s, %s, %s, now()) ON CONFLICT DO NOTHING"
            given: tuple[Any, ...] = (*self._identity(), partition, position)
        else:
            text = (
                "UPDATE {} SET position = %s, written_at = now() WHERE sink = %s AND target = %s"
                " AND topic = %s AND partition = %s AND position = %s"
            )
            given = (position, *self._identity(), partition, known)
        query = self._sql.SQL(text).format(self._positions)
        if self._connection.execute(query, given).rowcount != 1:
            raise TransientError(
                f"another run of {self._target.sink} has written in the meantime",
                code="sink.taken",
                hint="it goes on from what the other run wrote",
            )

    def _apply(self, rows: Sequence[Row]) -> None:
        """Write rows in the transaction that is open."""
        if self._key_of is not None:
            self._apply_by_key(rows)
            return
        for change, several in groupby(rows, key=attrgetter("change")):
            if change == "add":
                self._copy(self._table, [self._values(row.record) for row in several])
            else:
                self._take_back([self._values(row.record) for row in several])

    def _apply_by_key(self, rows: Sequence[Row]) -> None:
        """Bring the last change of each key about."""
        key_of = self._key_of
        if key_of is None:
            raise TypeError("there is no key")
        last = {key_of(row.record): row for row in rows}
        kept = [self._values(row.record) for row in last.values() if row.change == "add"]
        gone = [
            key if len(self._target.key) > 1 else (key,)
            for key, row in last.items()
            if row.change != "add"
        ]
        if kept:
            self._copy(self._sql.Identifier(_STAGE), kept)
            self._connection.execute(self._statements["merge"])
        if gone:
            self._copy(self._sql.Identifier(_GONE), gone, columns=self._target.key)
            self._connection.execute(self._statements["delete"])

    def _copy(
        self, table: "sql.Identifier", rows: Sequence[Any], columns: Sequence[str] = ()
    ) -> None:
        text = self._sql.SQL("COPY {} ({}) FROM STDIN").format(
            table, names_in(columns or self._columns)
        )
        with self._connection.cursor() as cursor, cursor.copy(text) as copy:
            for row in rows:
                copy.write_row(row)

    def _take_back(self, rows: Sequence[Any]) -> None:
        """Delete one row equal to each."""
        sql = self._sql
        same = sql.SQL(" AND ").join(
            sql.SQL("{} IS NOT DISTINCT FROM %s").format(sql.Identifier(name))
            for name in self._columns
        )
        text = sql.SQL("DELETE FROM {0} WHERE ctid = (SELECT ctid FROM {0} WHERE {1} LIMIT 1)")
        with self._connection.cursor() as cursor:
            cursor.executemany(text.format(self._table, same), rows)

    def _refused(self, rows: Sequence[Row]) -> dict[int, str]:
        """Return which rows the server refuses, and its words; nothing is written."""
        psycopg = client()
        found: dict[int, str] = {}

        def look(start: int, end: int) -> None:
            try:
                with self._connection.transaction():
                    self._apply(rows[start:end])
                    self._connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
                    self._clear()
            except psycopg.Error as error:
                if not _speaks_of_rows(error):
                    raise
                if end - start == 1:
                    found[start] = _words(error)
                    return
                middle = (start + end) // 2
                look(start, middle)
                look(middle, end)

        with explained(), self._connection.transaction(force_rollback=True):
            look(0, len(rows))
        if not found:
            raise TransientError(
                f"PostgreSQL refused a batch of {self._target.sink}, and then took every row",
                code="sink.refused",
            )
        return found

    def _clear(self) -> None:
        """Empty the temporary tables for the next half; a commit would do that."""
        if self._target.key:
            self._connection.execute(f"TRUNCATE {_STAGE}, {_GONE}")


def _speaks_of_rows(error: "Error") -> bool:
    """Return whether an error is about a value or a constraint, not about the server."""
    if error.sqlstate is None:
        return isinstance(error, client().DataError)
    return error.sqlstate.startswith(_REFUSED)


def _words(error: "Error") -> str:
    said = error.diag.message_primary or str(error)
    detail = error.diag.message_detail
    return f"PostgreSQL: {said}" + (f" ({detail})" if detail else "")
