from dataclasses import replace

import pytest

from penstock.core.records.evolution import refusals
from penstock.core.records.schema import (
    Choice,
    Field,
    Limits,
    ListOf,
    MapOf,
    Nested,
    Scalar,
    Schema,
)

INT, FLOAT, TEXT = Scalar("int"), Scalar("float"), Scalar("text")
OLD = Schema(
    name="Reading",
    fields=(
        Field(name="device", type=TEXT),
        Field(name="at", type=Scalar("instant")),
        Field(name="celsius", type=INT, limits=Limits(ge=-10, le=50)),
        Field(name="note", type=TEXT, nullable=True, optional=True),
        Field(name="kind", type=Choice(("a", "b"))),
        Field(name="tags", type=ListOf(INT)),
        Field(name="place", type=Nested(Schema(name="P", fields=(Field(name="x", type=INT),)))),
    ),
    key=("device",),
    time="at",
)


def with_field(name: str, **changes) -> Schema:
    return replace(
        OLD, fields=tuple(replace(f, **changes) if f.name == name else f for f in OLD.fields)
    )


def plus(*fields: Field) -> Schema:
    return replace(OLD, fields=OLD.fields + fields)


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        replace(OLD, name="Renamed"),
        replace(OLD, fields=OLD.fields[:-1]),
        plus(Field(name="new", type=TEXT, nullable=True, optional=True)),
        plus(Field(name="new", type=INT, optional=True, default=3)),
        with_field("celsius", type=FLOAT),
        with_field("device", nullable=True, optional=True),
        with_field("celsius", limits=None),
        with_field("celsius", limits=Limits(ge=-20)),
        with_field("kind", type=Choice(("a", "b", "c"))),
        with_field("kind", type=TEXT),
        with_field("tags", type=ListOf(FLOAT)),
    ],
)
def test_what_reads_every_earlier_record_may_change(new):
    assert refusals(OLD, new) == []


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (plus(Field(name="new", type=INT)), "new is new and required"),
        (with_field("note", nullable=False), "note was nullable, is not"),
        (with_field("note", optional=False), "note was optional, is required"),
        (with_field("celsius", type=TEXT), "celsius was int, is text"),
        (with_field("device", type=INT), "device was text, is int"),
        (with_field("celsius", limits=Limits(ge=-5, le=50)), "celsius had ge=-10, has ge=-5"),
        (with_field("celsius", limits=Limits(le=40)), "celsius had le=50, has le=40"),
        (with_field("celsius", limits=Limits(lt=90)), "celsius had no lt, has lt=90"),
        (with_field("kind", type=Choice(("a",))), "kind no longer takes b"),
        (with_field("tags", type=MapOf(INT)), "tags was list of int, is map of int"),
        (replace(OLD, key=()), "the key was device, is none"),
        (replace(OLD, time=None), "the event time was at, is none"),
        (
            with_field("place", type=Nested(Schema(name="P", fields=(Field(name="y", type=INT),)))),
            "place.y is new and required",
        ),
    ],
)
def test_what_cannot_read_earlier_records_is_refused_with_both_sides(new, said):
    assert [text for text in refusals(OLD, new) if text.startswith(said)]


def test_every_refusal_is_said_at_once():
    new = replace(with_field("celsius", type=TEXT), key=("at",))
    assert len(refusals(OLD, new)) == 2
