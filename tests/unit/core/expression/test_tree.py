"""An expression is a value: comparable, and a text with its schema as JSON."""

import json
from datetime import datetime

from penstock import record
from penstock.core.expression import from_json, parse
from penstock.core.records.record import record_type
from penstock.core.records.schema import ListOf, Scalar, Schema


@record()
class Position:
    north: float
    east: float | None


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float
    position: Position
    earlier: list[Position]
    tags: list[str]


def schema() -> Schema:
    found = record_type(Reading)
    assert found is not None
    return found.schema


def test_expressions_are_equal_where_they_say_the_same():
    assert parse("celsius>30", schema()) == parse("celsius > 30D", schema())
    assert hash(parse("celsius>30", schema())) == hash(parse("celsius > 30D", schema()))
    assert parse("celsius > 30", schema()) != parse("celsius > 31", schema())
    assert parse("celsius * 0.0D", schema()) != parse("celsius * -0.0D", schema())


def test_the_fields_it_reads_are_paths():
    text = "position.north + coalesce(earlier[0].east, 1) > celsius and device = tags[0]"

    assert parse(text, schema()).fields == (
        "celsius",
        "device",
        "earlier",
        "position.north",
        "tags",
    )


def test_its_type_is_that_of_a_field():
    assert parse("length(device)", schema()).field_type == Scalar("int")
    assert parse("celsius > 1", schema()).field_type == Scalar("bool")
    assert parse("tags", schema()).field_type == ListOf(Scalar("text"))
    assert parse("date_trunc('day', at)", schema()).field_type == Scalar("instant")
    assert parse("null", schema()).field_type is None


def test_nullability_is_known_beforehand():
    assert not parse("celsius * 1.8 + 32 > 0 and position.north > 1", schema()).nullable
    assert not parse("coalesce(position.east, 1)", schema()).nullable
    assert not parse("position.east <=> 1", schema()).nullable
    assert parse("position.east > 1", schema()).nullable
    assert parse("celsius / celsius", schema()).nullable
    assert not parse("celsius / 2", schema()).nullable


def test_json_holds_the_text_and_the_schema_it_needs():
    expression = parse("position.north > 1 and device <> 'x'", schema())

    value = json.loads(json.dumps(expression.to_json()))

    assert from_json(value) == expression
    assert [field["name"] for field in value["schema"]["fields"]] == ["device", "position"]
