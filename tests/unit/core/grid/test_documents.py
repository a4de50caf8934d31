from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.grid.documents import decode_document, document_reader, encode_document
from penstock.core.live.values import order_of
from penstock.core.records.record import record, record_type
from penstock.errors import DataError

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.binary(),
        st.datetimes(timezones=ZONES),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["a", "b", "$x", ""]), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_written_is_read_again_with_its_type(value):
    document = {"_id": 1, "it": value}
    found = decode_document(encode_document(document))
    assert order_of(found) == order_of(document)
    assert type(found["it"]) is type(value)


def test_a_day_is_read_as_its_midnight():
    found = decode_document(encode_document({"_id": 1, "day": date(2026, 1, 2)}))
    assert found["day"] == datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{",
        '{"at": {"$date": "yesterday"}}',
        '{"price": {"$numberDecimal": "NaN"}}',
        '{"price": {"$numberDecimal": "much"}}',
        '{"price": {"$numberDecimal": "1E+999999999"}}',
        '{"price": {"$numberDecimal": "1E-999999999"}}',
        '{"price": {"$numberDecimal": "' + "1" * 5_000 + '"}}',
        '{"count": ' + "1" * 5_000 + "}",
        '{"data": {"$binary": "?"}}',
        "{" + '"a": {' * 200 + "}" * 201,
    ],
)
def test_a_text_that_is_no_document_is_refused_with_a_way_out(text):
    with pytest.raises(DataError, match="the document cannot be read") as caught:
        decode_document(text)
    assert caught.value.code == "live.document"
    assert caught.value.hint


def test_a_row_is_a_document_with_its_key_as_the_identity():
    @record(key="id", time="at")
    class Order:
        id: str
        at: datetime
        price: Decimal
        tags: list[str] | None = None

    at = datetime(2026, 1, 2, tzinfo=UTC)
    read = document_reader(record_type(Order))
    assert read(Order("a", at, Decimal("1.10"))) == {
        "_id": "a",
        "id": "a",
        "at": at,
        "price": Decimal("1.10"),
        "tags": None,
    }


def test_several_key_fields_are_an_object_of_them():
    @record(key=("shop", "number"))
    class Order:
        shop: str
        number: int

    read = document_reader(record_type(Order))
    assert read(Order("a", 7))["_id"] == {"shop": "a", "number": 7}


def test_a_text_field_can_hold_the_document():
    @record(key="id")
    class Anything:
        id: str
        body: str

    read = document_reader(record_type(Anything), "body")
    assert read(Anything("a", '{"x": {"$date": "2026-01-02T00:00:00Z"}}')) == {
        "_id": "a",
        "x": datetime(2026, 1, 2, tzinfo=UTC),
    }
    assert read(Anything("a", '{"_id": 7}')) == {"_id": 7}
    with pytest.raises(DataError, match="it is not JSON"):
        read(Anything("a", "x"))
