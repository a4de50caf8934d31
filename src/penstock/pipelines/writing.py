"""From the DataFrame that a pipeline's function returns to the rows of its output."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as every PySpark program calls it
from pyspark.sql import types as sql

from penstock.core.graph import Data, Pipeline
from penstock.core.place import did_you_mean
from penstock.core.schema import Field, FieldType, ListOf, MapOf, Nested, Scalar, Schema
from penstock.errors import DefinitionError, Problem
from penstock.pipelines.keys import instant_text, key_of
from penstock.pipelines.schema import frame_type, holds_milliseconds
from penstock.pipelines.sqltext import Sql, literal, name, when

__all__ = ["log_rows", "typed"]

_WIDER: dict[str, tuple[str, ...]] = {
    "bigint": ("tinyint", "smallint", "int"),
    "double": ("float", "tinyint", "smallint", "int"),
    "timestamp": ("timestamp_ntz",),
}
"""What may be widened to what a record holds without losing anything."""


def typed(frame: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Return the frame with exactly the columns of the record that the pipeline writes.

    Raises DefinitionError with every column that is missing, not wanted or of another type.
    """
    schema = pipeline.writes.record.schema
    wanted = frame_type(schema)
    problems = [
        Problem("pipeline.columns", f"pipeline {pipeline.name!r} {text}", hint, pipeline.place)
        for text, hint in _mismatches(frame.schema, wanted, schema, pipeline.writes)
    ]
    if problems:
        raise DefinitionError(tuple(problems))
    given = set(frame.columns)
    return frame.select(
        *(
            (F.col(f"`{field.name}`") if field.name in given else F.lit(_default(schema, field)))
            .cast(field.dataType.simpleString())  # as text: whether it may be null is not cast
            .alias(field.name)
            for field in wanted
        )
    )


def log_rows(frame: DataFrame, data: Data) -> DataFrame:
    """Return key and value of typed records, as ``core.codec`` would write and does read them."""
    schema = data.record.schema
    columns = {field.name: name(field.name) for field in schema.fields}
    values = ", ".join(
        f"{literal(field.name)}, {_on_the_log(columns[field.name], field, schema)}"
        for field in schema.fields
    )
    value = f"to_json(named_struct({values}), map('ignoreNullFields', 'false'))"
    return frame.selectExpr(
        f"{key_of(schema, columns) or 'cast(null as binary)'} as key",
        f"cast({value} as binary) as value",
    )


@dataclass(frozen=True, slots=True)
class _Names:
    given: tuple[str, ...]
    wanted: tuple[str, ...]


def _mismatches(
    given: sql.StructType, wanted: sql.StructType, schema: Schema, data: Data
) -> list[tuple[str, str]]:
    found = []
    names = _Names(tuple(given.fieldNames()), tuple(wanted.fieldNames()))
    for field in wanted:
        if field.name in names.given:
            has = given[field.name].dataType
            if not _fits(has, field.dataType):
                text = f"gives {field.name!r} as {has.simpleString()}"
                wants = field.dataType.simpleString()
                hint = f"{data.name} holds {wants}: cast it, .cast({wants!r})"
                found.append((text, hint))
        elif not _optional(schema, field.name):
            text = f"does not give {field.name!r}, which {data.name} ({schema.name}) holds"
            found.append((text, f"the frame has {', '.join(names.given) or 'no columns'}"))
    for extra in names.given:
        if extra not in names.wanted:
            text = f"gives {extra!r}, which {data.name} ({schema.name}) does not hold"
            hint = f"{did_you_mean(extra, names.wanted)} Or leave it out: select(...)"
            found.append((text, hint))
    return found


def _fits(has: sql.DataType, wants: sql.DataType) -> bool:
    """Whether a value can be cast without loss; nullability is the record's own affair."""
    match has, wants:
        case sql.ArrayType(), sql.ArrayType():
            return _fits(has.elementType, wants.elementType)
        case sql.MapType(), sql.MapType():
            return _fits(has.keyType, wants.keyType) and _fits(has.valueType, wants.valueType)
        case sql.StructType(), sql.StructType():
            return has.fieldNames() == wants.fieldNames() and all(
                _fits(one.dataType, other.dataType) for one, other in zip(has, wants, strict=True)
            )
        case sql.DecimalType(), sql.DecimalType():
            return has.scale <= wants.scale and has.precision - has.scale <= (
                wants.precision - wants.scale
            )
    same = has.simpleString() == wants.simpleString()
    return same or has.simpleString() in _WIDER.get(wants.simpleString(), ())


def _optional(schema: Schema, column: str) -> bool:
    field = schema.field(column)
    return field is not None and field.optional


def _default(schema: Schema, column: sql.StructField) -> object:
    field = schema.field(column.name)
    return field.default if field else None


def _on_the_log(column: Sql, field: Field, schema: Schema) -> Sql:
    if holds_milliseconds(schema, field.name):
        return f"unix_millis({column})"
    return _json_value(column, field.type)


def _json_value(column: Sql, kind: FieldType) -> Sql:
    """Return a value that ``to_json`` writes as the codec reads it; only instants differ."""
    match kind:
        case Scalar("instant"):
            return instant_text(column)
        case ListOf(item) if _holds_instants(item):
            return f"transform({column}, each -> {_json_value('each', item)})"
        case MapOf(value) if _holds_instants(value):
            return f"transform_values({column}, (_, each) -> {_json_value('each', value)})"
        case Nested(inner) if _holds_instants(kind):
            parts = ", ".join(
                f"{literal(field.name)}, {_json_value(f'{column}.{name(field.name)}', field.type)}"
                for field in inner.fields
            )
            return when(f"{column} is not null", f"named_struct({parts})")
    return column


def _holds_instants(kind: FieldType) -> bool:
    match kind:
        case ListOf(inner) | MapOf(inner):
            return _holds_instants(inner)
        case Nested(schema):
            return any(_holds_instants(field.type) for field in schema.fields)
    return kind == Scalar("instant")
