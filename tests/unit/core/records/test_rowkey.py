"""Which values are the key of a row."""

from datetime import UTC, date, datetime
from typing import Literal

import pytest

from penstock import App, delete, record
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.core.records.rowkey import row_of


@record(key=("site", "number", "day", "at", "on", "kind"))
class Row:
    site: str
    number: int
    day: date
    at: datetime
    on: bool
    kind: Literal["a", "b"]
    text: str = ""


@record(key="number")
class Numbered:
    number: int
    text: str


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_the_key_of_a_row_is_that_of_its_record():
    key = ("x", 5, date(2026, 1, 1), NOON, True, "b")
    for made, given in ((Row(*key), key), (Numbered(5, "five"), 5)):
        kind = record_type(type(made))
        codec = JsonCodec(kind)
        assert codec.key(row_of(kind.schema, given)) == codec.key(made)


@pytest.mark.parametrize("key", ["5", 5.0, True, None, (5,), (5, 6)])
def test_what_the_key_field_does_not_hold_is_no_key(key):
    with pytest.raises(TypeError, match=r"is not a key of Numbered, which is \(number: int\)"):
        row_of(record_type(Numbered).schema, key)


@pytest.mark.parametrize(
    "key",
    [
        "x",
        ("x", 5),
        ("x", 5, date(2026, 1, 1), NOON.replace(tzinfo=None), True, "b"),
        ("x", 5, NOON, NOON, True, "b"),
        ("x", 5, date(2026, 1, 1), NOON, True, "c"),
    ],
)
def test_all_fields_of_a_key_must_fit(key):
    with pytest.raises(TypeError, match="is not a key of Row"):
        row_of(record_type(Row).schema, key)


def test_what_is_on_a_stream_stays():
    app = App("demo")
    with pytest.raises(TypeError, match="'numbers' is not a table: only rows of tables"):
        delete(app.stream("numbers", Numbered), 5)
    assert delete(table := app.table("rows", Numbered), 5) == delete(table, 5) != delete(table, 6)
