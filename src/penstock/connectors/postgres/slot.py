"""What a server keeps for one source of changes: a publication, and a replication slot."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connectors.postgres.address import client
from penstock.connectors.postgres.rows import KEY_TYPES
from penstock.errors import ConfigurationError, TransientError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["Slot", "TableKey", "ensure_slot", "inspect_server", "table_keys"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The names of both, and what they are for."""

    name: str
    publication: str
    tables: tuple[str, ...]
    """Each with its schema."""
    snapshot: bool


@dataclass(frozen=True, slots=True)
class TableKey:
    """The primary key of a table: names and types of its columns, in its order."""

    names: tuple[str, ...]
    types: tuple[str, ...]


def inspect_server(connection: "Connection[Any]", slot: Slot) -> str:
    """Return what the server says; ConfigurationError where changes cannot be followed."""
    row = connection.execute(
        "SELECT current_setting('wal_level'), current_setting('server_version'),"
        " (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user)"
    ).fetchone()
    level, version, may = row or ("", "", False)
    if level != "logical":
        raise _unfit(f"the server's wal_level is {level!r}", "ALTER SYSTEM SET wal_level = logical")
    if not may:
        raise _unfit("the user may not replicate", "ALTER ROLE ... REPLICATION")
    table_keys(connection, slot)
    there = _found(connection, slot) is not None
    return f"PostgreSQL {version}; slot {slot.name} is {'there' if there else 'not there yet'}"


def ensure_slot(connection: "Connection[Any]", slot: Slot, *, begun: bool) -> None:
    """Make what is missing at the beginning; later, what is missing means that changes are lost."""
    inspect_server(connection, slot)
    found = _found(connection, slot)
    if begun and (found is None or found["wal_status"] == "lost"):
        raise ConfigurationError(
            f"the slot {slot.name} is gone, and with it changes that were not read",
            code="source.gap",
            hint="a source of another name, with another slot, begins with all rows again",
        )
    _ensure_publication(connection, slot)
    if found is None:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot.name])
        return
    if found["plugin"] != "pgoutput" or not found["here"]:
        raise ConfigurationError(
            f"the slot {slot.name} belongs to somebody else",
            code="source.slot",
            hint="take another",
        )
    if found["active"]:
        raise TransientError(
            f"another reader holds the slot {slot.name}",
            code="source.taken",
            hint="it goes on when the other one has ended",
        )


def table_keys(connection: "Connection[Any]", slot: Slot) -> dict[str, TableKey]:
    """Return the primary key of each table; ConfigurationError where one does not fit."""
    found = {}
    for table in slot.tables:
        rows = connection.execute(
            "SELECT a.attname, t.typname FROM pg_index i"
            " CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(number, place)"
            " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number"
            " JOIN pg_type t ON t.oid = a.atttypid"
            " WHERE i.indisprimary AND i.indrelid = to_regclass(%s) ORDER BY k.place",
            [quoted(table)],
        ).fetchall()
        if not rows:
            raise _unfit(f"there is no table {table} with a primary key", f"\\d {table}")
        key = TableKey(tuple(name for name, _ in rows), tuple(kind for _, kind in rows))
        if slot.snapshot and (odd := [kind for kind in key.types if kind not in KEY_TYPES]):
            text = f"the key of {table} has a {odd[0]}, whose order is not known here"
            raise _unfit(text, "snapshot=False leaves out the rows that are there")
        found[table] = key
    return found


def quoted(table: str) -> str:
    """Return the name of a table as it may stand in a statement."""
    name: str = client().sql.Identifier(*table.split(".")).as_string()
    return name


def _found(connection: "Connection[Any]", slot: Slot) -> dict[str, Any] | None:
    row = connection.execute(
        "SELECT plugin, database = current_database(), active, coalesce(wal_status, '')"
        " FROM pg_replication_slots WHERE slot_name = %s",
        [slot.name],
    ).fetchone()
    return dict(zip(("plugin", "here", "active", "wal_status"), row, strict=True)) if row else None


def _ensure_publication(connection: "Connection[Any]", slot: Slot) -> None:
    sql = client().sql
    held = connection.execute(
        "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s",
        [slot.publication],
    ).fetchall()
    there = connection.execute(
        "SELECT 1 FROM pg_publication WHERE pubname = %s", [slot.publication]
    ).fetchone()
    tables = [sql.Identifier(*table.split(".")) for table in slot.tables]
    if there is None:
        connection.execute(
            sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(
                sql.Identifier(slot.publication), sql.SQL(", ").join(tables)
            )
        )
    elif missing := sorted(set(slot.tables) - {name for (name,) in held}):
        raise _unfit(
            f"the publication {slot.publication} lacks {', '.join(missing)}",
            f"ALTER PUBLICATION {slot.publication} ADD TABLE {missing[0]}",
        )


def _unfit(text: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"changes cannot be followed: {text}", code="source.unfit", hint=hint)
