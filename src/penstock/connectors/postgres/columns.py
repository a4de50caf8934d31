"""Record types as columns, and their values as PostgreSQL takes them; no I/O."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.core.records.schema import Choice, Field, FieldType, Scalar, Schema

if TYPE_CHECKING:
    from psycopg import sql

__all__ = ["column_type", "create_table", "names_in", "values_reader"]

_TYPES = {
    "bool": "boolean",
    "int": "bigint",
    "float": "double precision",
    "text": "text",
    "bytes": "bytea",
    "instant": "timestamptz",
    "date": "date",
    "decimal": "numeric(38, 18)",
}


def column_type(kind: FieldType) -> str:
    """Return the type of a column that holds such values.

    >>> column_type(Scalar("instant")), column_type(Choice(("up", "down")))
    ('timestamptz', 'text')
    """
    match kind:
        case Scalar(name):
            return _TYPES[name]
        case Choice():
            return "text"
    return "jsonb"


def values_reader(schema: Schema) -> Callable[[Any], Iterable[Any]]:
    """Return the function from a record to the values of its columns, in order."""
    names = [field.name for field in schema.fields]
    read = attrgetter(*names)
    structured = [n for n, field in enumerate(schema.fields) if _is_json(field.type)]
    if len(names) == 1:
        return lambda record: (_json(read(record)) if structured else read(record),)
    if not structured:
        return read

    def values(record: Any) -> list[Any]:
        found = list(read(record))
        for number in structured:
            found[number] = _json(found[number])
        return found

    return values


def create_table(table: "sql.Identifier", schema: Schema, key: tuple[str, ...]) -> "sql.Composed":
    """Return the statement that makes a table for records of a type, if there is none."""
    from psycopg import sql

    lines = [_column(field) for field in schema.fields]
    if key:
        lines.append(sql.SQL("PRIMARY KEY ({})").format(names_in(key)))
    columns = sql.SQL(", ").join(lines)
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(table, columns)


def names_in(names: Iterable[str], *, of: str = "") -> "sql.Composed":
    """Return names of columns, quoted, with commas; ``of`` is an alias in front of each."""
    from psycopg import sql

    return sql.SQL(", ").join(sql.Identifier(*filter(None, (of, name))) for name in names)


def _column(field: Field) -> "sql.Composed":
    from psycopg import sql

    rest = "" if field.nullable else " NOT NULL"
    return sql.SQL("{} {}").format(
        sql.Identifier(field.name),
        sql.SQL(column_type(field.type) + rest),  # a list of ours
    )


def _is_json(kind: FieldType) -> bool:
    return not isinstance(kind, Scalar | Choice)


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
