"""From the DataFrame that a pipeline's function returns to the rows of its output.

Columns are compared with the record before anything runs; values while it runs: a record that its
own stream would refuse (a null where none may be, NaN, a value outside its limits) ends the query
and is not written. A row for a table may say that its key is deleted: see :data:`DELETED`.
"""

from pyspark.sql import DataFrame
from pyspark.sql import types as sql

from penstock.core.graph.data import Data, OnLog, Table
from penstock.core.graph.parts import Pipeline
from penstock.core.hints import did_you_mean
from penstock.core.instants import FIRST_DAY, LAST_DAY
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
from penstock.errors import DefinitionError, Problem
from penstock.pipelines.gate.keys import instant_text, key_of
from penstock.pipelines.gate.values import event_time, is_good_instant, within
from penstock.pipelines.gate.variant import default_value
from penstock.pipelines.spark.failures import REFUSED_OUTPUT
from penstock.pipelines.spark.schema import frame_type, holds_milliseconds
from penstock.pipelines.spark.sqltext import Sql, all_of, any_of, coalesce, literal, name, when

__all__ = ["DELETED", "log_rows", "typed"]

DELETED = "_deleted"
"""The bool column that a frame for a table may have: true deletes the row's key from the table."""

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
    problems = [
        Problem("pipeline.columns", f"pipeline {pipeline.name!r} {text}", hint, pipeline.place)
        for text, hint in _mismatches(frame.schema, schema, pipeline.writes)
    ]
    if problems:
        raise DefinitionError(tuple(problems))
    values = {field.name: _value(frame.schema, field, schema) for field in schema.fields}
    if _deletes(frame.schema, pipeline.writes):
        # Of a deleted key nothing but the key is looked at.
        gone = coalesce(DELETED, "false")
        for field in values.keys() - set(schema.key):
            values[field] = when(f"not {gone}", values[field])
        values[DELETED] = gone
    return frame.selectExpr(*(f"{value} as {name(field)}" for field, value in values.items()))


def log_rows(frame: DataFrame, data: OnLog) -> DataFrame:
    """Return key and value of typed records, as ``core.codec`` would write and does read them."""
    schema = data.record.schema
    columns = {field.name: name(field.name) for field in schema.fields}
    values = ", ".join(
        f"{_on_the_log(columns[field.name], field, schema)} as {columns[field.name]}"
        for field in schema.fields
    )
    limit = data.topic.max_record_bytes
    too_large = _refusal(literal(f"a record has more than {limit} bytes"))
    value = f"to_json(struct({values}), map('ignoreNullFields', 'false'))"
    if _deletes(frame.schema, data):
        value = when(f"not {DELETED}", value)
    fits = f"value is null or octet_length(value) <= {limit}"
    return frame.selectExpr(
        f"{key_of(schema, columns) or 'cast(null as binary)'} as key", f"{value} as value"
    ).selectExpr("key", f"cast({when(fits, 'value', too_large)} as binary) as value")


def _deletes(given: sql.StructType, data: Data) -> bool:
    """Whether rows of a frame may be deletions: there is the column, and the record has it not."""
    taken = data.record.schema.field(DELETED) is not None
    return isinstance(data, Table) and not taken and DELETED in given.fieldNames()


def _value(given: sql.StructType, field: Field, schema: Schema) -> Sql:
    """Return the value of a field: what the frame gives or the default, checked."""
    column = name(field.name)
    if field.name not in given.fieldNames():
        value = default_value(field)
        if holds_milliseconds(schema, field.name):
            value = event_time(value).value
        return value
    value = column
    if holds_milliseconds(schema, field.name) and isinstance(
        given[field.name].dataType, sql.LongType
    ):
        value = event_time(column).value
    # Cast to a type as text, which says nothing of nulls: they are looked at below.
    value = f"cast({value} as {frame_type(schema)[field.name].dataType.simpleString()})"
    kind = Scalar("instant") if holds_milliseconds(schema, field.name) else field.type
    text = f"{field.name} must be {str(field).partition(': ')[2]} and is "
    shown = f"concat({literal(text)}, coalesce(left(string({column}), 100), 'null'))"
    ok = coalesce(_good(value, kind, field), "false")
    return when(ok, value, _refusal(shown))


def _refusal(reason: Sql) -> Sql:
    return f"raise_error(concat({literal(REFUSED_OUTPUT)}, {reason}))"


def _good(value: Sql, kind: FieldType, field: Field | None = None, depth: int = 0) -> Sql:
    """Return whether a value of the right type is one the codec would take back."""
    good = f"{value} is not null"
    match kind:
        case Scalar("float"):
            good = f"abs({value}) < double('infinity')"
        case Scalar("instant"):
            # Not by its year, which is the work of a calendar.
            good = is_good_instant(value)
        case Scalar("date"):
            good = f"unix_date({value}) between {FIRST_DAY} and {LAST_DAY}"
        case Choice(choices):
            good = f"{value} in ({', '.join(literal(choice) for choice in choices)})"
        case ListOf(inner):
            item = f"item{depth}"
            good = f"forall({value}, {item} -> {_surely(item, inner, depth)})"
        case MapOf(inner):
            item = f"item{depth}"
            good = f"forall(map_values({value}), {item} -> {_surely(item, inner, depth)})"
        case Nested(schema):
            parts = [(f"{value}.{name(each.name)}", each) for each in schema.fields]
            good = all_of(good, *(_good(part, each.type, each, depth) for part, each in parts))
            times = [part for part, each in parts if holds_milliseconds(schema, each.name)]
            good = all_of(good, *(event_time(part).ok for part in times))
    if field is None:
        return good
    good = all_of(good, within(value, kind, field.limits))
    return any_of(f"{value} is null", good) if field.nullable else good


def _surely(item: Sql, kind: FieldType, depth: int) -> Sql:
    return coalesce(_good(item, kind, depth=depth + 1), "false")


def _mismatches(given: sql.StructType, schema: Schema, data: Data) -> list[tuple[str, str]]:
    found = []
    names, wanted = given.fieldNames(), frame_type(schema)
    holds = f"{data.name} ({schema.name})"
    for field in schema.fields:
        wants = wanted[field.name].dataType
        if field.name not in names:
            if not field.optional:
                hint = f"the frame has {', '.join(names) or 'no columns'}"
                found.append((f"does not give {field.name!r}, which {holds} holds", hint))
            continue
        has = given[field.name].dataType
        milliseconds = holds_milliseconds(schema, field.name) and isinstance(has, sql.LongType)
        if not milliseconds and not _fits(has, wants):
            word = wants.simpleString()
            hint = f"{data.name} needs {word}: add .cast({word!r})"
            found.append((f"gives {field.name!r} as {has.simpleString()}", hint))
    for column in names:
        if column == DELETED and _deletes(given, data):
            if not isinstance(given[column].dataType, sql.BooleanType):
                said = f"gives {column!r} as {given[column].dataType.simpleString()}"
                found.append((said, "true deletes the key of the row: add .cast('boolean')"))
        elif column not in wanted.fieldNames():
            hint = (
                f"{did_you_mean(column, wanted.fieldNames())} Or leave the column out: select(...)"
            )
            found.append((f"gives {column!r}, which {holds} does not hold", hint))
    return found


def _fits(has: sql.DataType, wants: sql.DataType) -> bool:
    """Whether a value can be cast without loss; nulls are looked at when it runs."""
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


def _on_the_log(column: Sql, field: Field, schema: Schema) -> Sql:
    if holds_milliseconds(schema, field.name):
        return f"unix_millis({column})"
    return _json_value(column, field.type, 0)


def _json_value(value: Sql, kind: FieldType, depth: int) -> Sql:
    """Return a value that ``to_json`` writes as the codec writes it."""
    if _is_written_by_spark(kind):
        return value
    item = f"item{depth}"
    match kind:
        case ListOf(inner):
            return f"transform({value}, {item} -> {_json_value(item, inner, depth + 1)})"
        case MapOf(inner):
            body = _json_value(item, inner, depth + 1)
            return f"transform_values({value}, (key{depth}, {item}) -> {body})"
        case Nested(schema):
            parts = [(f"{value}.{name(each.name)}", each) for each in schema.fields]
            written = (
                f"{_json_value(part, each.type, depth)} as {name(each.name)}"
                for part, each in parts
            )
            return when(f"{value} is not null", f"struct({', '.join(written)})")
    return instant_text(value) if kind == Scalar("instant") else _decimal_text(value)


def _decimal_text(value: Sql) -> Sql:
    text = f"string({value})"
    return when(f"contains({text}, 'E')", text, f"rtrim('.', rtrim('0', {text}))")


def _is_written_by_spark(kind: FieldType) -> bool:
    """Whether ``to_json`` writes such a value as the codec does, without our help."""
    match kind:
        case ListOf(inner) | MapOf(inner):
            return _is_written_by_spark(inner)
        case Nested(schema):
            return all(_is_written_by_spark(field.type) for field in schema.fields)
    return kind not in (Scalar("instant"), Scalar("decimal"))
