"""Rows of a table of PostgreSQL for services that ask for them by key.

The keys of a question go as arrays, one for each field of the key, beside one statement that stays
the same. Each row comes with the place of its key in the arrays, so that the server alone decides
which values are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.lookup.definition import Lookup, made_lookup, read_limits
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.postgres.address import Address, client, explained, read_address
from penstock.connectors.postgres.rows import use_plain_values
from penstock.connectors.postgres.table import read_table
from penstock.core.records.record import RecordType, record_type
from penstock.core.records.schema import Schema
from penstock.errors import ConfigurationError, DataError, Problem

if TYPE_CHECKING:
    from psycopg import AsyncConnection, sql

__all__ = ["TableRows", "postgres_lookup"]

T = TypeVar("T")

_VALUE = "22"
"""The class of SQLSTATE that speaks of a value: it does not fit the type of its column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresLookupTarget:
    """Which columns of which table are asked for, and by which."""

    table: tuple[str, ...]
    key: tuple[str, ...]
    columns: tuple[str, ...]
    address: Address

    async def connect(self) -> "TableRows":
        """Connect, and look at the table."""
        connection = await self.address.connect_async("penstock look-up")
        try:
            with explained():
                statement = self._statement(connection, await self._types(connection))
        except BaseException:
            await connection.close()
            raise
        return TableRows(connection, statement, several=len(self.key) > 1)

    async def _types(self, connection: "AsyncConnection[Any]") -> dict[str, str]:
        """Return the types of the columns; ConfigurationError where one is not there."""
        name = client().sql.Identifier(*self.table).as_string(connection)
        # Without a modifier, as -1 says: a cast to varchar(3) would cut a longer key off.
        query = (
            "SELECT attname, format_type(atttypid, -1) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        )
        found = await (await connection.execute(query, [name])).fetchall()
        types = {str(column): str(kind) for column, kind in found}
        if missing := [each for each in (*self.key, *self.columns) if each not in types]:
            raise ConfigurationError(
                f"table {'.'.join(self.table)} has no column {missing[0]!r}",
                code="lookup.column",
                hint=f"its columns are {', '.join(sorted(types))}",
            )
        return types

    def _statement(
        self, connection: "AsyncConnection[Any]", types: dict[str, str]
    ) -> "sql.Composed":
        from psycopg import sql

        use_plain_values(connection.adapters)
        arrays = sql.SQL(", ").join(
            sql.SQL("%s::{}[]").format(sql.SQL(types[each])) for each in self.key
        )
        asked = [f"k{n}" for n in range(len(self.key))]
        return sql.SQL(
            "SELECT place, found.* FROM unnest({arrays}) WITH ORDINALITY AS asked ({asked}, place)"
            " CROSS JOIN LATERAL (SELECT {columns} FROM {table} AS found WHERE {same} LIMIT 2)"
            " AS found"
        ).format(
            columns=sql.SQL(", ").join(sql.Identifier("found", each) for each in self.columns),
            arrays=arrays,
            asked=sql.SQL(", ").join(map(sql.Identifier, asked)),
            table=sql.Identifier(*self.table),
            same=sql.SQL(" AND ").join(
                sql.SQL("{} = {}").format(
                    sql.Identifier("found", each), sql.Identifier("asked", name)
                )
                for each, name in zip(self.key, asked, strict=True)
            ),
        )


class TableRows:
    """One connection that rows are asked for over."""

    def __init__(
        self, connection: "AsyncConnection[Any]", statement: "sql.Composed", *, several: bool
    ) -> None:
        self._connection, self._statement, self._several = connection, statement, several

    async def fetch(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Return the rows of keys, by the names of their columns."""
        psycopg = client()
        arrays = list(zip(*keys, strict=True)) if self._several else [keys]
        values = [list(each) for each in arrays]
        with explained():
            try:
                cursor = await self._connection.execute(self._statement, values, prepare=True)
                found = await cursor.fetchall()
            except (psycopg.DataError, psycopg.ProgrammingError) as error:
                if error.sqlstate is None or error.sqlstate.startswith(_VALUE):
                    text = " ".join(str(error).split())
                    raise DataError(f"PostgreSQL: {text}", code="lookup.key") from error
                raise
        names = [each.name for each in (cursor.description or ())[1:]]
        rows: list[Any] = [None] * len(keys)
        for place, *row in found:
            known = rows[place - 1] is not None
            rows[place - 1] = _ambiguous() if known else dict(zip(names, row, strict=True))
        return rows

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()


def postgres_lookup(
    table: str,
    *,
    record: type[T],
    address: str,
    password: str | None = None,
    key: str | tuple[str, ...] | None = None,
    cache: int = 10_000,
    fresh: str | timedelta = "1m",
    absent: str | timedelta = "1s",
    stale: str | timedelta = "0s",
    timeout: str | timedelta = "2s",
    at_once: int = 100,
) -> Lookup[T]:
    """Look up rows of a table of PostgreSQL by key, from async services.

    Keys that calls ask for at the same time go in one statement. Rows are kept, up to a number and
    an age. While the server is away, calls get a TransientError (``connector.away``), or a stale
    row where that is allowed. It needs ``penstock[postgres]``.

    Args:
        table: Its name, with that of its schema if that is not in the search path: ``shop.orders``.
        record: The type of the rows; its fields are the columns that are read.
        address: A connection string or address of libpq without a password, TLS included. Or a
            reference to one.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        key: The columns that rows are found by; by default the key of the record type. There must
            be one row for each key at most, and should be an index.
        cache: How many rows are kept at most, for each partition of the service.
        fresh: How old a row that is kept may be; ``"0s"`` asks each time.
        absent: How long it is remembered that there is no row.
        stale: How old a row may be while the server does not answer.
        timeout: How long an answer may take, connecting included.
        at_once: How many keys go in one statement at most.

    Examples:
        >>> known = postgres_lookup("devices", record=Reading, key="device", address="postgresql://db")
        >>> known.describe()
        'Reading from table devices of PostgreSQL'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("postgres_lookup", problems)
    ages = fresh, absent, stale
    limits = read_limits(options, cache=cache, ages=ages, timeout=timeout, at_once=at_once)
    where = read_address(options, address, password, "60s")
    target = _target(options, record_type(record), read_table(options, table), key, where)
    return made_lookup(
        options,
        problems,
        name=f"table {'.'.join(target.table)} of PostgreSQL",
        record=record,
        keys=len(target.key),
        connect=target.connect,
        limits=limits,
    )


def _target(
    options: ConnectorOptions,
    record: RecordType[Any] | None,
    table: tuple[str, ...],
    key: Any,
    address: Address,
) -> PostgresLookupTarget:
    schema = record.schema if record else Schema(name="unknown", fields=(), key=("unknown",))
    columns = tuple(each.name for each in schema.fields)
    return PostgresLookupTarget(
        table=table, key=_key(options, key, schema.key), columns=columns, address=address
    )


def _key(options: ConnectorOptions, given: Any, usual: tuple[str, ...]) -> tuple[str, ...]:
    names = usual if given is None else (given,) if isinstance(given, str) else given
    if isinstance(names, tuple | list) and names and all(isinstance(each, str) for each in names):
        return tuple(names)
    options.wrong("key", f"{given!r} names no column", 'key="id" or key=("shop", "id")')
    return ("unknown",)


def _ambiguous() -> DataError:
    text = "there are several rows of this key: look up by columns with a unique index"
    return DataError(text, code="lookup.ambiguous")
