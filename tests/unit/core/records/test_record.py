from datetime import UTC, datetime
from typing import Annotated, Literal

import pytest

from penstock import limits, record
from penstock.core.records.record import record_type
from penstock.core.records.schema import Choice, ListOf, Nested, Scalar, Schema


@record()
class Position:
    latitude: float
    longitude: float


@record(key="device", time="at")
class Reading:
    """A temperature."""

    device: str
    at: datetime
    celsius: Annotated[float, limits(ge=-273.15)]
    note: str | None
    unit: Literal["C", "F"] = "C"
    tags: list[str] = []  # noqa: RUF012 - copied by the record type
    position: Position | None = None

    def fahrenheit(self) -> float:
        return self.celsius * 1.8 + 32


def schema_of(cls) -> Schema:
    found = record_type(cls)
    assert found is not None
    return found.schema


def codes_of(cls) -> list[str]:
    found = record_type(cls)
    assert found is not None
    return [problem.code for problem in found.problems]


def test_a_record_is_built_compared_and_shown_as_a_value():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    reading = Reading("a", at, 20.0)  # type: ignore[call-arg]
    assert reading == Reading(device="a", at=at, celsius=20.0, note=None)
    assert "celsius=20.0" in repr(reading)
    assert reading.fahrenheit() == 68.0
    assert Reading.__doc__ == "A temperature."
    with pytest.raises(AttributeError):
        reading.celsius = 3.0


def test_the_schema_comes_from_the_annotations():
    schema = schema_of(Reading)
    assert schema.key == ("device",)
    assert schema.time == "at"
    assert [field.type for field in schema.fields] == [
        Scalar("text"),
        Scalar("instant"),
        Scalar("float"),
        Scalar("text"),
        Choice(("C", "F")),
        ListOf(Scalar("text")),
        Nested(schema_of(Position)),
    ]
    note = schema.field("note")
    assert note is not None
    assert note.nullable
    assert note.optional


def test_a_schema_survives_its_own_json():
    assert Schema.from_json(schema_of(Reading).to_json()) == schema_of(Reading)


def test_a_default_before_a_required_field_makes_construction_keyword_only():
    @record()
    class Early:
        first: int = 1
        second: str

    assert Early(second="x").first == 1


def test_unknown_key_and_time_fields_are_kept_with_a_suggestion():
    @record(key="devise", time="when")
    class Wrong:
        device: str
        at: datetime

    assert codes_of(Wrong) == ["record.key-unknown", "record.time-unknown"]
    assert record_type(Wrong).problems[0].hint == "did you mean 'device'?"
    assert record_type(Wrong).problems[0].place.file == __file__


def test_a_key_is_never_null_and_never_a_float():
    @record(key=("a", "b"))
    class Wrong:
        a: str | None
        b: float

    assert codes_of(Wrong) == ["record.key-type", "record.key-type"]


def test_an_event_time_is_an_instant_or_milliseconds():
    @record(time="at")
    class Wrong:
        at: str

    @record(time="at")
    class Milliseconds:
        at: int

    assert codes_of(Wrong) == ["record.time-type"]
    assert codes_of(Milliseconds) == []


@pytest.mark.parametrize("hint", [complex, int | str, dict[int, str], tuple[int, int], object])
def test_a_type_no_engine_shares_is_a_problem_and_not_an_exception(hint):
    cls = record()(type("Odd", (), {"__annotations__": {"x": hint}}))
    assert codes_of(cls) == ["record.type"]


def test_an_annotation_that_names_nothing_is_a_problem():
    cls = record()(type("Odd", (), {"__annotations__": {"x": "Nowhere"}}))
    assert "record.annotation" in codes_of(cls)
