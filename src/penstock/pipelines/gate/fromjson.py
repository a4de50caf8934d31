"""Read plain records fast: ``from_json``, and cheap checks that its answer is exact.

``from_json`` reads numbers and bools strictly, and anything at all as a text. For a record without
an object inside, a few searches in the bytes show that nothing of that kind happened; where they
do not, the exact reader looks. They succeed on compact JSON and on that with a blank after each
colon.
"""

import json

from pyspark.sql import types as sql

from penstock.core.records.schema import Choice, Field, FieldType, ListOf, Scalar, Schema
from penstock.pipelines.gate.values import Reading, event_time, is_good_instant, read_scalar, within
from penstock.pipelines.gate.variant import ROOT, VariantPath, default_value, with_document
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

__all__ = ["instants", "is_plain", "is_typed", "is_well_formed", "parsed", "read_fields"]

_STRICT = ("bool", "int", "float")
_CORRUPT = "_penstock_corrupt"
_REPLACEMENT = "\ufffd"
_BACKSLASH, _UNICODE_ESCAPE = "\\", "\\u"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}


def is_plain(schema: Schema) -> bool:
    """Whether records of this type can be read the fast way: scalars, and lists of numbers."""
    return all(_is_strict(field.type) or _is_text(field.type) for field in schema.fields)


def parsed(text: Sql, schema: Schema) -> Sql:
    """Return the record as ``from_json`` sees it."""
    fields = [f"{name(field.name)} {_wire_type(field.type)}" for field in schema.fields]
    shape = literal(", ".join([*fields, f"{_CORRUPT} string"]))
    options = ", ".join(literal(word) for option in _OPTIONS.items() for word in option)
    return f"from_json({text}, {shape}, map({options}))"


def instants(found: Sql, schema: Schema) -> list[Sql]:
    """Return the instants of a record as columns.

    The verdict and the value both want them, and Spark would read each of them twice.
    """
    return [
        f"{read_scalar(f'{found}.{name(field.name)}', field.type).value} as {_instant(field)}"
        for field in schema.fields
        if field.type == Scalar("instant")
    ]


def is_well_formed(found: Sql) -> Sql:
    """Return whether the text began with a JSON object, its numbers and bools of their types."""
    return all_of(f"{found} is not null", f"{found}.{_CORRUPT} is null")


def read_fields(text: Sql, found: Sql, schema: Schema) -> list[Reading]:
    """Read the fields of a record, in their order, where it :func:`is_typed`."""
    return [_read_field(field, text, found, schema) for field in schema.fields]


def _read_field(field: Field, text: Sql, found: Sql, schema: Schema) -> Reading:
    raw = f"{found}.{name(field.name)}"
    if field.type == Scalar("text"):
        reading = Reading(_is_utf8(raw, text), raw)
    elif field.type == Scalar("instant"):
        reading = Reading(is_good_instant(_instant(field)), _instant(field))
    elif isinstance(field.type, Scalar | Choice):
        reading = read_scalar(raw, field.type)
    else:
        reading = Reading(_is_complete(raw, field.type, 0), raw)
    ok = all_of(reading.ok, within(reading.value, field.type, field.limits))
    value, default = reading.value, default_value(field)
    if holds_milliseconds(schema, field.name):
        ok, value = all_of(ok, event_time(value).ok), event_time(value).value
        default = event_time(default).value
    if field.optional:
        ok = any_of(f"{raw} is null", ok)
    if field.default is not None:
        absent = with_document(text, f"{_place(field).get('variant')} is null")
        missing = when(absent, default) if field.nullable else default
        value = when(f"{raw} is not null", value, missing)
    return Reading(ok, value)


def _instant(field: Field) -> Sql:
    return name(f"_penstock_{field.name}")


def _is_utf8(raw: Sql, text: Sql) -> Sql:
    """Return whether a text is there, from bytes that were UTF-8.

    The parser puts a mark in place of those that were not; only a text with that mark is worth the
    look at all bytes of the record.
    """
    # A choice, not an "or": see is_typed.
    valid = when(contains(raw, _REPLACEMENT), f"is_valid_utf8({text})", "true")
    return all_of(f"{raw} is not null", valid)


def is_typed(value: Sql, text: Sql, found: Sql, schema: Schema) -> Sql:
    """Return whether the text is that record alone, its texts were texts, its nulls allowed."""
    sure = all_of(
        _stands_alone(value, text), *(_is_sure(one, text, found) for one in schema.fields)
    )
    exact = all_of(f"{ROOT} is not null", *(_is_exact(field) for field in schema.fields))
    # A choice, not an "or": Spark would compute what both sides share before it looks at either.
    return when(sure, "true", with_document(text, exact))


def _stands_alone(value: Sql, text: Sql) -> Sql:
    """Return whether the only closing brace is the last byte.

    Then the record is all there is, it has no object inside, and a name followed by a colon and a
    quote is a field that holds a text. Escapes, which may hide half a character, are not for here.
    """
    return all_of(
        f"startswith({text}, '{{')",
        f"endswith({text}, '}}')",
        f"not contains(substring({value}, 1, octet_length({value}) - 1), x'7d')",
        f"not {contains(text, _UNICODE_ESCAPE)}",
    )


def _is_sure(field: Field, text: Sql, found: Sql) -> Sql:
    raw = f"{found}.{name(field.name)}"
    typed = "true"
    if _is_text(field.type):
        typed = _holds_text(field, text)
    if not field.optional:
        return typed
    if field.nullable and field.default is None:
        return any_of(f"{raw} is null", typed)
    quoted = f'"{field.name}"'
    absent = all_of(f"not {contains(text, quoted)}", f"not {contains(text, _BACKSLASH)}")
    return when(f"{raw} is null", absent, typed)


def _holds_text(field: Field, text: Sql) -> Sql:
    """Return whether the field's name is followed by a quote, where its value does not show it.

    Searched with the comma before it: there are fewer commas than quotes to stop at.
    """
    if _shows_text(field.type):
        return "true"
    compact, spaced = f'"{field.name}":"', f'"{field.name}": "'
    return any_of(
        f"startswith({text}, {literal('{' + compact)})",
        contains(text, f",{compact}"),
        f"startswith({text}, {literal('{' + spaced)})",
        contains(text, f", {spaced}"),
    )


def _shows_text(kind: FieldType) -> bool:
    """Whether no good value of a type looks like a number, a bool, a list or an object."""
    if isinstance(kind, Choice):
        return not any(_is_json(value) for value in kind.values)
    return isinstance(kind, Scalar) and kind.name in ("instant", "date")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_exact(field: Field) -> Sql:
    json_type = _place(field).json_type
    allowed = all_of(
        "true" if field.nullable else f"{json_type} != 'VOID'",
        f"{json_type} in ('STRING', 'VOID')" if _is_text(field.type) else "true",
    )
    # Null where the field is absent; whether a required one is there, the values show.
    return allowed if allowed == "true" else coalesce(allowed, "true")


def _place(field: Field) -> VariantPath:
    return VariantPath(ROOT).field(field.name)


def _is_strict(kind: FieldType) -> bool:
    if isinstance(kind, ListOf):
        return _is_strict(kind.item)
    return isinstance(kind, Scalar) and kind.name in _STRICT


def _is_text(kind: FieldType) -> bool:
    # A decimal may be a JSON number too, whose digits from_json does not keep.
    return isinstance(kind, Choice) or (
        isinstance(kind, Scalar) and kind.name not in (*_STRICT, "decimal")
    )


def _is_complete(raw: Sql, kind: FieldType, depth: int) -> Sql:
    """Return whether a list of numbers has no null and no infinity in it."""
    if not isinstance(kind, ListOf):
        return read_scalar(raw, kind).ok if isinstance(kind, Scalar) else "true"
    item = f"item{depth}"
    inner = coalesce(_is_complete(item, kind.item, depth + 1), "false")
    return f"forall({raw}, {item} -> {inner})"


def _wire_type(kind: FieldType) -> str:
    return (value_type(kind) if _is_strict(kind) else sql.StringType()).simpleString()
