"""Rows of Spark as plain values: instants in UTC, records as dictionaries, bytes as bytes.

PySpark makes of an instant the time on the wall of this machine, and fails at the ends of the
calendar. So instants leave Spark as microseconds; what PySpark has no value for leaves as a text.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as sql

from penstock.core.instants import EPOCH
from penstock.pipelines.spark.sqltext import Sql, name, when

__all__ = ["as_read", "reader"]

_SENT_BY: dict[type[sql.DataType], Sql] = {
    sql.TimestampType: "unix_micros",
    sql.VariantType: "to_json",
    sql.YearMonthIntervalType: "string",
    sql.CalendarIntervalType: "string",
}


def as_read(frame: DataFrame) -> DataFrame:
    """Return a frame with its values as :func:`reader` takes them."""
    kinds = [field.dataType for field in frame.schema]
    if not any(map(_is_sent_otherwise, kinds)):
        return frame
    columns = [f"c{number}" for number in range(len(kinds))]
    found = [_sent(name(column), kind) for column, kind in zip(columns, kinds, strict=True)]
    # Columns may share a name.
    return frame.toDF(*columns).selectExpr(*found)


def reader(kind: sql.DataType) -> Callable[[Any], Any]:
    """Return what makes a plain value of a column's; the type is that before :func:`as_read`."""
    match kind:
        case sql.TimestampType():
            return lambda value: None if value is None else EPOCH + timedelta(microseconds=value)
        case sql.ArrayType():
            item = reader(kind.elementType)
            return lambda value: None if value is None else [item(each) for each in value]
        case sql.MapType():
            key, inner = reader(kind.keyType), reader(kind.valueType)
            return lambda value: (
                None
                if value is None
                else {str(key(each)): inner(found) for each, found in value.items()}
            )
        case sql.StructType():
            readers = [(field.name, reader(field.dataType)) for field in kind]
            return lambda value: (
                None
                if value is None
                else {field: read(each) for (field, read), each in zip(readers, value, strict=True)}
            )
    return _plain


def _sent(value: Sql, kind: sql.DataType, depth: int = 0) -> Sql:
    """Return a value as it leaves Spark."""
    if not _is_sent_otherwise(kind):
        return value
    one, other = f"k{depth}", f"v{depth}"
    match kind:
        case sql.ArrayType():
            return f"transform({value}, {one} -> {_sent(one, kind.elementType, depth + 1)})"
        case sql.MapType():
            keys = f"transform(map_keys({value}), {one} -> {_sent(one, kind.keyType, depth + 1)})"
            values = _sent(other, kind.valueType, depth + 1)
            return f"map_from_arrays({keys}, transform(map_values({value}), {other} -> {values}))"
        case sql.StructType():
            fields = ", ".join(
                f"'f{number}', {_sent(f'{value}.{name(field.name)}', field.dataType, depth + 1)}"
                for number, field in enumerate(kind)
            )
            return when(f"{value} is null", "null", f"named_struct({fields})")
    return f"{_SENT_BY[type(kind)]}({value})"


def _is_sent_otherwise(kind: sql.DataType) -> bool:
    match kind:
        case sql.ArrayType():
            return _is_sent_otherwise(kind.elementType)
        case sql.MapType():
            return _is_sent_otherwise(kind.keyType) or _is_sent_otherwise(kind.valueType)
        case sql.StructType():
            return any(_is_sent_otherwise(field.dataType) for field in kind)
    return type(kind) in _SENT_BY


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
