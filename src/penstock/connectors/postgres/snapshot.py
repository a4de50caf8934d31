"""The rows that are there when a source of changes begins, in the order of their keys."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from penstock.connectors.captured import Captured
from penstock.connectors.connector import Item
from penstock.connectors.postgres.address import Address, client, explained
from penstock.connectors.postgres.rows import KEY_TYPES, use_plain_values
from penstock.connectors.postgres.seen import Key
from penstock.connectors.postgres.slot import Slot, TableKey

if TYPE_CHECKING:
    from psycopg import Connection, ServerCursor, sql

__all__ = ["Snapshot", "SnapshotItem", "key_loader"]

_AT_ONCE = 1_000


class SnapshotItem(Item, frozen=True):
    """A row that was there, and its key as texts."""

    table: str = ""
    key: tuple[str, ...] = ()


class Snapshot:
    """One transaction that reads the rest of the rows of all tables."""

    def __init__(
        self,
        address: Address,
        slot: Slot,
        keys: Mapping[str, TableKey],
        looks: Mapping[str, Sequence[Sequence[Any]]],
    ) -> None:
        self._keys = keys
        self._before = {table: [list(each) for each in several] for table, several in looks.items()}
        self._read: dict[str, tuple[str, ...]] = {}
        self._tables = list(slot.tables)
        self._cursor: ServerCursor[Any] | None = None
        self._names: list[str] = []
        self._count = 0
        self._connection: Connection[Any] = address.connect(f"penstock source {slot.name}")
        try:
            with explained():
                use_plain_values(self._connection.adapters)
                self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                row = self._connection.execute(
                    "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn() - '0/0'"
                ).fetchone()
        except BaseException:
            self.close()
            raise
        text, end = row or ("", 0)
        self._look = [text, int(end)]

    @property
    def table(self) -> str:
        """The table that is read now."""
        return self._tables[0] if self._tables else ""

    def read(self) -> list[SnapshotItem]:
        """Return the next rows; none: all have been read."""
        with explained():
            while self._tables:
                if self._cursor is None:
                    self._open(self._tables[0])
                if rows := self._fetch():
                    return rows
                self._tables.pop(0)
                self._close_cursor()
        return []

    def looks_after(self, item: Item) -> dict[str, list[list[Any]]]:
        """Return which keys were read by which transaction, up to an item."""
        if not isinstance(item, SnapshotItem):
            raise TypeError("no row that was there")
        read = {**self._read, item.table: item.key}
        return {
            table: [
                *self._before.get(table, []),
                *([[list(read[table]), *self._look]] if table in read else []),
            ]
            for table in self._keys
            if table in read or table in self._before
        }

    def finished(self) -> dict[str, list[list[Any]]]:
        """Return which keys were read by which transaction, when all have been read."""
        return {table: [*self._before.get(table, []), [None, *self._look]] for table in self._keys}

    def close(self) -> None:
        """Give the transaction up; it has changed nothing."""
        with suppress(Exception):
            self._close_cursor()
        with suppress(Exception):
            self._connection.close()

    def _close_cursor(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def _open(self, table: str) -> None:
        sql, key = client().sql, self._keys[table]
        order = sql.SQL(", ").join(_ordered(name, kind) for name, kind in _columns(key))
        texts = sql.SQL(", ").join(
            sql.SQL("{}::text").format(sql.Identifier("t", n)) for n in key.names
        )
        query = sql.SQL("SELECT {}, t.* FROM {} t").format(texts, sql.Identifier(*table.split(".")))
        given: list[str] = []
        if (before := self._before.get(table)) and before[-1][0] is not None:
            given = [str(each) for each in before[-1][0]]
            places = sql.SQL(", ").join(
                sql.SQL("%s::{}" + KEY_TYPES[kind]).format(sql.Identifier(kind))  # from our list
                for kind in key.types
            )
            query += sql.SQL(" WHERE ({}) > ({})").format(order, places)
        self._cursor = self._connection.cursor(name="penstock")
        self._cursor.execute(query + sql.SQL(" ORDER BY {}").format(order), given)
        columns = self._cursor.description or []
        self._names = [column.name for column in columns[len(key.names) :]]

    def _fetch(self) -> list[SnapshotItem]:
        table = self._tables[0]
        width = len(self._keys[table].names)
        rows = self._cursor.fetchmany(_AT_ONCE) if self._cursor is not None else []
        made = []
        for row in rows:
            change = Captured("read", table, dict(zip(self._names, row[width:], strict=True)))
            made.append(SnapshotItem(change, self._count, table, row[:width]))
            self._count += 1
        if made:
            self._read[table] = made[-1].key
        return made


def key_loader(
    connection: "Connection[Any]", key: TableKey
) -> Callable[[Sequence[str | bytes]], Key]:
    """Return the function from the texts of a key to values in the order of the server."""
    from penstock.connectors.postgres.rows import Loader

    types = [connection.adapters.types[kind].oid for kind in key.types]
    load = Loader(connection, types).load
    as_bytes = [kind in ("text", "varchar", "uuid") for kind in key.types]

    def read(texts: Sequence[str | bytes]) -> Key:
        raw = [text.encode() if isinstance(text, str) else bytes(text) for text in texts]
        values = load(raw)
        return tuple(
            given if plain else value
            for given, value, plain in zip(raw, values, as_bytes, strict=True)
        )

    return read


def _columns(key: TableKey) -> list[tuple[str, str]]:
    return list(zip(key.names, key.types, strict=True))


def _ordered(name: str, kind: str) -> "sql.Composed":
    from psycopg import sql

    return sql.SQL("{}" + KEY_TYPES[kind]).format(sql.Identifier("t", name))
