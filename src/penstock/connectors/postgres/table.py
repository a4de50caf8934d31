"""A table of PostgreSQL as a sink: its options, and what must be there before rows come."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from penstock.connectors.connector import BatchLimits
from penstock.connectors.opening import closed_on_failure, sink_of
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.postgres.address import Address, read_address
from penstock.connectors.postgres.writer import PostgresSinkTarget, TableWriter
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, Problem

__all__ = ["PostgresTable", "postgres_table"]

Mode = Literal["upsert", "append"]

_NAME_LENGTH = 63
_NAME_PARTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresTable:
    """A table of PostgreSQL that takes rows; :func:`postgres_table` makes it."""

    table: tuple[str, ...]
    address: Address
    mode: Mode
    key: tuple[str, ...] | None
    create: bool
    limits: BatchLimits
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    takes_deletions: Literal[True] = field(default=True, init=False)
    delivery: Literal["exactly_once"] = field(default="exactly_once", init=False)

    def describe(self) -> str:
        """Return where it writes, for people."""
        return f"table {'.'.join(self.table)} of PostgreSQL"

    def open(self, sink: Sink) -> TableWriter:
        """Connect, take the sink's lock, and look at the table and what was written."""
        with closed_on_failure(TableWriter(self._target(sink), self.address)) as writer:
            writer.prepare()
        return writer

    def attempt(self, part: Sink | Source) -> str:
        """Connect, and compare the table with the record type."""
        writer = TableWriter(self._target(sink_of(part)), self.address)
        try:
            return writer.inspect()
        finally:
            writer.close()

    def _target(self, sink: Sink) -> PostgresSinkTarget:
        schema = sink.reads.record.schema
        key = self.key or (schema.key if self.mode == "upsert" else ())
        if self.mode == "upsert" and not key:
            raise ConfigurationError(
                f"sink {sink.name!r}: {schema.name} has no key to write rows by",
                code="sink.no-key",
                hint='give it one: postgres_table(..., key="id"), or mode="append"',
            )
        for name in key:
            if schema.field(name) is None:
                raise ConfigurationError(
                    f"sink {sink.name!r}: {schema.name} has no field {name!r} to write rows by",
                    code="sink.no-key",
                    hint=f"its fields are {', '.join(each.name for each in schema.fields)}",
                )
        if sink.reads.kind == "table" and (self.mode == "append" or set(key) != set(schema.key)):
            raise ConfigurationError(
                f"sink {sink.name!r}: rows of a table are written by the table's key",
                code="sink.no-key",
                hint='leave out key=, and take mode="upsert"',
            )
        return PostgresSinkTarget(
            sink=sink.name,
            topic=sink.reads.topic.name,
            schema=schema,
            table=self.table,
            key=key,
            create=self.create,
        )


def postgres_table(
    table: str,
    *,
    address: str,
    password: str | None = None,
    mode: Mode = "upsert",
    key: str | tuple[str, ...] | None = None,
    create: bool = False,
    every: str | timedelta = "500ms",
    rows: int = 10_000,
    size: str | int = "8MiB",
    timeout: str | timedelta = "60s",
) -> PostgresTable:
    """Write a stream or a table to a table of PostgreSQL, exactly once.

    Rows and the position behind them are written in one transaction. A row that the server refuses
    becomes a dead letter with the server's words. While the server is away, the sink is degraded,
    reads nothing more, and tries again for as long as that takes. One run of a sink writes at a
    time. It needs ``penstock[postgres]``.

    Args:
        table: Its name, with that of its schema if that is not in the search path: ``shop.orders``.
        address: A connection string or address of libpq without a password, TLS included:
            ``postgresql://app@db.example/shop?sslmode=verify-full``. Or a reference to one.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        mode: ``"upsert"``: a record replaces the row of its key, and what is deleted or taken back
            deletes it. ``"append"``: every record is a row of its own, and one that is taken back
            deletes one equal row.
        key: The fields of the key; by default those of the record type. The table must have a
            unique index on them.
        create: Whether to make the table from the record type where there is none.
        every: How long the first record of a batch waits for others.
        rows: How many records a batch has at most.
        size: How large a batch is at most.
        timeout: How long one statement may take.

    Examples:
        >>> shown = postgres_table("alarms", address="postgresql://app@db/shop", mode="append")
        >>> app.sink("alarms_in_postgres", shown, reads=alarms).delivery
        'exactly_once'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("postgres_table", problems)
    limits = BatchLimits(
        rows=options.whole("rows", rows, 10_000, least=1, most=1_000_000),
        size=options.size("size", size, 8 << 20),
        span=options.positive_span("every", every, timedelta(milliseconds=500)),
    )
    return PostgresTable(
        table=read_table(options, table),
        address=read_address(options, address, password, timeout),
        mode=options.word("mode", mode, ("upsert", "append"), "upsert"),
        key=_key(options, key),
        create=options.flag("create", create),
        limits=limits,
        problems=tuple(problems),
    )


def read_table(options: ConnectorOptions, given: Any) -> tuple[str, ...]:
    """Return the parts of a table's name; the letters of each are free, because it is quoted."""
    parts = tuple(given.split(".")) if isinstance(given, str) else ()
    fits = all(0 < len(part.encode()) <= _NAME_LENGTH and "\0" not in part for part in parts)
    if not fits or not 0 < len(parts) <= _NAME_PARTS:
        options.wrong("table", f"{given!r} is not a table's name", '"orders" or "shop.orders"')
        return ("unknown",)
    return parts


def _key(options: ConnectorOptions, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else given
    if isinstance(names, tuple | list) and names and all(isinstance(each, str) for each in names):
        return tuple(names)
    options.wrong("key", f"{given!r} is not a field's name", 'key="id" or key=("shop", "id")')
    return None
