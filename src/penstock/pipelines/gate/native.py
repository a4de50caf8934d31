"""The gate without Python, as real-time mode needs it: the codec's rules as Spark's expressions.

The verdict deviates from the codec's only here, always by refusing what the codec takes, except
for the last:

- bytes that are not UTF-8 in a field nobody declared, unless the record type is plain;
- decimals that are JSON numbers (not texts) with an exponent or more than 38 digits;
- records that name a field twice, unless the record type is plain;
- JSON nested very deep, or numbers with more than 1,000 digits, in a field nobody declared;
- in a record of a plain type that names a field twice only the last one is looked at, and if that
  should be a text, a number there may pass for one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql import DataFrame

from penstock.core.graph.data import OnLog, Table
from penstock.core.records.schema import Schema
from penstock.pipelines.gate import fromjson, variant
from penstock.pipelines.gate.keys import key_of
from penstock.pipelines.gate.values import Reading
from penstock.pipelines.spark.sqltext import Sql, all_of, coalesce, name, when

__all__ = ["ARCHIVED", "REFUSED", "judged", "refused"]

REFUSED = "_penstock_refused"
"""The verdict on a row. True: a dead letter. False: a record. Null: a deletion in a table."""

ARCHIVED = "_penstock_kept"
"""A column of rows that may be from an archive: the record, which was judged when it came there.

It is null for rows of the log; rows from an archive have no key and no value.
"""

_TEXT = "cast(value as string)"
"""Not a column of its own: the cast costs nothing, a second copy of each record does."""

_FOUND = "_penstock_found"


@dataclass(frozen=True, slots=True)
class _Judgement:
    readings: list[Reading]
    refused: Sql


def judged(
    rows: DataFrame, data: OnLog, *, beside: Mapping[str, Sql] = MappingProxyType({})
) -> DataFrame:
    """Return the fields of the records and :data:`REFUSED`, one row for each row of the topic.

    ``beside`` names further columns and what they are, in terms of the topic's own.
    """
    schema, judgement = data.record.schema, _judge(data)
    named = {
        field.name: reading.value
        for reading, field in zip(judgement.readings, schema.fields, strict=True)
    }
    verdict = judgement.refused
    if ARCHIVED in rows.columns:
        read = f"{ARCHIVED} is null"
        named = {
            field: when(read, value, f"{ARCHIVED}.{name(field)}") for field, value in named.items()
        }
        verdict = when(read, verdict, "false")
    fields = [f"{found} as {name(column)}" for column, found in (*named.items(), *beside.items())]
    return _prepared(rows, schema).selectExpr(*fields, f"{verdict} as {REFUSED}")


def refused(rows: DataFrame, data: OnLog) -> DataFrame:
    """Return the rows of the topic that are dead letters, as they stand on the log."""
    prepared = _prepared(rows, data.record.schema)
    if ARCHIVED in rows.columns:
        prepared = prepared.where(f"{ARCHIVED} is null")
    return prepared.where(_judge(data).refused).select(*rows.columns)


def _prepared(rows: DataFrame, schema: Schema) -> DataFrame:
    if not fromjson.is_plain(schema):
        return rows.selectExpr("*", f"{variant.document(_TEXT)} as {_FOUND}")
    found = rows.selectExpr("*", f"{fromjson.parsed(_TEXT, schema)} as {_FOUND}")
    instants = fromjson.instants(_FOUND, schema)
    return found.selectExpr("*", *instants) if instants else found


def _judge(data: OnLog) -> _Judgement:
    schema = data.record.schema
    if fromjson.is_plain(schema):
        readings = fromjson.read_fields(_TEXT, _FOUND, schema)
        parsed = fromjson.is_well_formed(_FOUND)
        typed = fromjson.is_typed("value", _TEXT, _FOUND, schema)
    else:
        record = variant.VariantPath(_FOUND)
        readings = variant.read_fields(record, schema)
        parsed, typed = all_of(f"is_valid_utf8({_TEXT})", f"{_FOUND} is not null"), "true"
    accepted = all_of(
        f"octet_length(value) <= {data.topic.max_record_bytes}",
        parsed,
        *(reading.ok for reading in readings),
        typed,
        _right_key(schema, readings),
    )
    verdict = f"not {coalesce(accepted, 'false')}"
    if isinstance(data, Table):
        verdict = when("value is null and key is not null", "null", verdict)
    return _Judgement(readings, verdict)


def _right_key(schema: Schema, readings: list[Reading]) -> Sql:
    named = zip(readings, schema.fields, strict=True)
    expected = key_of(schema, {field.name: reading.value for reading, field in named})
    return "true" if expected is None else f"key = {expected}"
