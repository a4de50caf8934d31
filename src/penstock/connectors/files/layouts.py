"""How records stand in a file: JSON lines, CSV, Parquet."""

import csv
import gzip
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, BinaryIO, TypeAlias

import msgspec

from penstock.connectors.connector import Row
from penstock.core.records.schema import (
    Choice,
    Field,
    FieldType,
    ListOf,
    MapOf,
    Nested,
    Scalar,
    Schema,
)
from penstock.errors import ConfigurationError

__all__ = ["CSV", "JSON_LINES", "PARQUET", "Dump", "Layout", "zipped"]

Dump: TypeAlias = Callable[[BinaryIO, Sequence[Row]], None]

_ZIP_LEVEL = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """What files end with, and what writes rows of a record type into one."""

    suffix: str
    dump: Callable[[Schema], Dump]


def zipped(layout: Layout) -> Layout:
    """Return a layout whose files are compressed with gzip."""

    def dump(schema: Schema) -> Dump:
        write = layout.dump(schema)

        def into(file: BinaryIO, rows: Sequence[Row]) -> None:
            with gzip.GzipFile("", "wb", _ZIP_LEVEL, file, mtime=0) as inner:
                write(inner, rows)  # type: ignore[arg-type]  # it has what is used of it

        return into

    return Layout(f"{layout.suffix}.gz", dump)


def _json_lines(_schema: Schema) -> Dump:
    def into(file: BinaryIO, rows: Sequence[Row]) -> None:
        file.writelines(row.value.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n" for row in rows)

    return into


def _csv(schema: Schema) -> Dump:
    names = [field.name for field in schema.fields]

    def into(file: BinaryIO, rows: Sequence[Row]) -> None:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            writer.writerow([_text(getattr(row.record, name)) for name in names])
        file.write(text.getvalue().encode())

    return into


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    shown = msgspec.json.encode(value).decode()
    return shown[1:-1] if shown.startswith('"') else shown


def _parquet(schema: Schema) -> Dump:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigurationError(
            "Parquet needs a library that is not installed",
            code="connector.missing",
            detail=str(error),
            hint="pip install 'penstock[spark]', or pyarrow alone",
        ) from error
    fields = [(each, attrgetter(each.name)) for each in schema.fields]
    types = pa.schema([_arrow_field(pa, each) for each in schema.fields])

    def into(file: BinaryIO, rows: Sequence[Row]) -> None:
        columns = []
        for (field, read), kind in zip(fields, types, strict=True):
            values = [read(row.record) for row in rows]
            if not isinstance(field.type, Scalar | Choice):
                values = [_plain(value, field.type) for value in values]
            columns.append(pa.array(values, kind.type))
        parquet.write_table(pa.table(columns, schema=types), file, compression="zstd")

    return into


def _arrow_field(pa: Any, field: Field) -> Any:
    return pa.field(field.name, _arrow_type(pa, field.type), field.nullable)


def _arrow_type(pa: Any, kind: FieldType) -> Any:
    match kind:
        case ListOf(item):
            return pa.list_(_arrow_type(pa, item))
        case MapOf(value):
            return pa.map_(pa.string(), _arrow_type(pa, value))
        case Nested(schema):
            return pa.struct([_arrow_field(pa, field) for field in schema.fields])
        case Choice():
            return pa.string()
    return {
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "text": pa.string(),
        "bytes": pa.binary(),
        "instant": pa.timestamp("us", tz="UTC"),
        "date": pa.date32(),
        "decimal": pa.decimal128(38, 18),
    }[kind.name]


def _plain(value: Any, kind: FieldType) -> Any:
    """Return a value as Arrow takes it: records as dicts, maps as pairs."""
    if value is None:
        return None
    match kind:
        case ListOf(item):
            return [_plain(each, item) for each in value]
        case MapOf(item):
            return [(name, _plain(each, item)) for name, each in value.items()]
        case Nested(schema):
            return {
                field.name: _plain(getattr(value, field.name), field.type)
                for field in schema.fields
            }
    return value


JSON_LINES = Layout(".jsonl", _json_lines)
CSV = Layout(".csv", _csv)
PARQUET = Layout(".parquet", _parquet)
