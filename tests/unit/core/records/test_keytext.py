"""A key on the log is read back as it was written."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Literal

import pytest

from penstock import record
from penstock.core.records.codec import key_encoder
from penstock.core.records.keytext import key_reader
from penstock.core.records.record import record_type

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@record(key="text")
class Text:
    text: str


@record(key="kind")
class Kind:
    kind: Literal["a", "b"]


@record(key="number")
class Number:
    number: int


@record(key="at")
class At:
    at: datetime


@record(key=("site", "day", "number", "on"))
class Several:
    site: str
    day: date
    number: int
    on: bool


@pytest.mark.parametrize(
    ("row", "values"),
    [
        (Text('a "b", c'), ('a "b", c',)),
        (Text(""), ("",)),
        (Kind("b"), ("b",)),
        (Number(-7), (-7,)),
        (At(NOON), (NOON,)),
        (At(NOON.astimezone(timezone(timedelta(hours=2)))), (NOON,)),
        (Several("x", date(2026, 1, 1), 5, on=True), ("x", date(2026, 1, 1), 5, True)),
    ],
)
def test_a_key_is_read_back_as_it_was_written(row, values):
    schema = record_type(type(row)).schema
    assert key_reader(schema)(key_encoder(schema)(row)) == values


@pytest.mark.parametrize(
    ("kind", "key"), [(Number, b"x"), (At, b"noon"), (Several, b'["x"]'), (Text, b"\xff")]
)
def test_bytes_that_are_no_such_key_are_a_value_error(kind, key):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        key_reader(record_type(kind).schema)(key)
