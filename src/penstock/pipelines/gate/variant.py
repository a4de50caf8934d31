"""Reading a record exactly as the codec does, through Spark's variant type.

A variant keeps the JSON type of every value and tells an absent field from a null one, which
``from_json`` does not: it makes a text of any number. This reader is right for every record type.
``fromjson`` is twice as fast for plain ones, and asks this one if it is not sure.
"""

import json
from dataclasses import dataclass

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
from penstock.pipelines.gate.values import Reading, event_time, read_scalar, within
from penstock.pipelines.spark.schema import holds_milliseconds, value_type
from penstock.pipelines.spark.sqltext import (
    Sql,
    all_of,
    any_of,
    coalesce,
    contains,
    literal,
    name,
    when,
)

__all__ = ["ROOT", "VariantPath", "default_value", "document", "read_fields", "with_document"]

_END = "penstock:end-of-record"
_BLANKS = " \t\r\n"
_TEXT_TYPES = {"text", "bytes", "instant", "date"}


@dataclass(frozen=True, slots=True)
class VariantPath:
    """A place inside a variant: the variable or column that holds it, and a path from there."""

    variant: Sql
    path: str = "$"

    def get(self, kind: str) -> Sql:
        """Return what stands here as a Spark type; null where it is not there or not like it."""
        return f"try_variant_get({self.variant}, {literal(self.path)}, {literal(kind)})"

    @property
    def json_type(self) -> Sql:
        """Return Spark's word for the JSON type here: ``VOID`` for null, null where absent."""
        return f"schema_of_variant({self.get('variant')})"

    def field(self, field_name: str) -> "VariantPath":
        """Return the place of a field of the object here."""
        return VariantPath(self.variant, f"{self.path}.{field_name}")


ROOT = "record"
"""The variable that holds the whole record where one is needed."""


def document(text: Sql) -> Sql:
    """Return the record as a variant; null where the text is not one JSON object and no more.

    Spark's JSON parsers stop at the end of the first value. Inside an array and followed by a
    mark, anything that comes between the record and the mark shows.
    """
    end = literal(f',"{_END}"]')
    found = f"try_parse_json(concat('[', {text}, {end}))"
    whole = all_of(
        f"startswith(ltrim({literal(_BLANKS)}, {text}), '{{')",
        f"not {contains(text, _END)}",
        f"{VariantPath('pair', '$[1]').get('string')} = {literal(_END)}",
    )
    return _let("pair", found, when(whole, VariantPath("pair", "$[0]").get("variant")))


def with_document(text: Sql, body: Sql) -> Sql:
    """Return the body's value, in which :data:`ROOT` is the document of a text."""
    return _let(ROOT, document(text), body)


def _let(variable: str, value: Sql, body: Sql) -> Sql:
    """Bind a variable, so that its value is computed once: SQL's only way is a list of one."""
    return f"transform(array({value}), {variable} -> {body})[0]"


def read_fields(place: VariantPath, schema: Schema) -> list[Reading]:
    """Read the fields of a record, in their order."""
    return [_read_field(place, field, schema) for field in schema.fields]


def default_value(field: Field) -> Sql:
    """Return what an absent field is."""
    if field.default is None:
        return f"cast(null as {value_type(field.type).simpleString()})"
    if isinstance(field.type, Scalar | Choice):
        return read_scalar(literal(field.default), field.type).value
    return _read(
        VariantPath(f"parse_json({literal(json.dumps(field.default))})"), field.type, 0
    ).value


def _read_field(
    place: VariantPath, field: Field, schema: Schema, *, depth: int | None = None
) -> Reading:
    """Read a field of the record at a place; with ``depth`` that is inside another record."""
    inner = place.field(field.name)
    reading = _read(inner, field.type, depth or 0)
    ok = all_of(reading.ok, within(reading.value, field.type, field.limits))
    value, default = reading.value, default_value(field)
    if holds_milliseconds(schema, field.name):
        ok = all_of(ok, event_time(value).ok)
        # Inside another record it is a number like others.
        if depth is None:
            value, default = event_time(value).value, event_time(default).value
    if field.nullable:
        ok = any_of(f"{inner.json_type} = 'VOID'", ok)
    if field.optional:
        # Of an absent field nothing is known, so neither is whether it is good.
        ok = any_of(f"{inner.get('variant')} is null", ok)
    if field.default is not None:
        value = when(f"{inner.get('variant')} is null", default, value)
    return Reading(ok, value)


def _read(place: VariantPath, kind: FieldType, depth: int) -> Reading:
    match kind:
        case Scalar() | Choice():
            return _read_scalar(place, kind)
        case ListOf(inner):
            item = f"item{depth}"
            reading = _read(VariantPath(item), inner, depth + 1)
            items = place.get("array<variant>")
            return Reading(
                all_of(_is_a(place, "ARRAY"), _for_all(items, item, reading.ok)),
                f"transform({items}, {item} -> {reading.value})",
            )
        case MapOf(inner):
            entry = f"entry{depth}"
            reading = _read(VariantPath(entry), inner, depth + 1)
            entries = place.get("map<string,variant>")
            return Reading(
                all_of(
                    _is_a(place, "OBJECT"), _for_all(f"map_values({entries})", entry, reading.ok)
                ),
                f"transform_values({entries}, (name{depth}, {entry}) -> {reading.value})",
            )
        case Nested(schema):
            readings = [_read_field(place, each, schema, depth=depth) for each in schema.fields]
            named = zip(readings, schema.fields, strict=True)
            value = ", ".join(f"{reading.value} as {name(field.name)}" for reading, field in named)
            return Reading(
                all_of(_is_a(place, "OBJECT"), *(reading.ok for reading in readings)),
                when(_is_a(place, "OBJECT"), f"struct({value})"),
            )


def _read_scalar(place: VariantPath, kind: Scalar | Choice) -> Reading:
    word = "text" if isinstance(kind, Choice) else kind.name
    number = f"substring_index({place.json_type}, '(', 1) in ('BIGINT', 'DECIMAL', 'DOUBLE')"
    text = f"{place.json_type} = 'STRING'"
    if word in _TEXT_TYPES:
        typed, raw = text, place.get("string")
    elif word == "decimal":
        # Of a number with an exponent, or of many digits, Spark has kept a double: not its digits.
        exact = f"substring_index({place.json_type}, '(', 1) in ('BIGINT', 'DECIMAL')"
        typed, raw = any_of(text, exact), place.get("string")
    elif word == "float":
        typed, raw = number, place.get("double")
    elif word == "int":
        typed, raw = f"{place.json_type} = 'BIGINT'", place.get("bigint")
    else:
        typed, raw = f"{place.json_type} = 'BOOLEAN'", place.get("boolean")
    reading = read_scalar(raw, kind)
    return Reading(all_of(typed, reading.ok), reading.value)


def _is_a(place: VariantPath, word: str) -> Sql:
    return f"startswith({place.json_type}, '{word}')"


def _for_all(items: Sql, variable: str, condition: Sql) -> Sql:
    return f"forall({items}, {variable} -> {coalesce(condition, 'false')})"
