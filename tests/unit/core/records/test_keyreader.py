"""What a key says is what was written."""

from datetime import UTC, date, datetime
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import record
from penstock.core.records.codec import key_encoder
from penstock.core.records.keyreader import key_reader
from penstock.core.records.record import record_type
from penstock.errors import DataError


def of(hint):
    cls = record(key="id")(type("One", (), {"__annotations__": {"id": hint}}))
    return record_type(cls)


@record(key=("shop", "number", "at"))
class Several:
    shop: str
    number: int
    at: datetime


INSTANTS = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (str, st.text()),
        (int, st.integers(-(2**63), 2**63 - 1)),
        (bool, st.booleans()),
        (date, st.dates()),
        (datetime, INSTANTS),
        (Literal["up", "down"], st.sampled_from(["up", "down"])),
    ],
)
@given(data=st.data())
def test_a_single_field_comes_back(hint, values, data):
    kind, value = of(hint), data.draw(values)
    key = key_encoder(kind.schema)(kind.cls(value))
    assert key_reader(kind.schema)(key).id == value


@given(st.text(), st.integers(-(2**63), 2**63 - 1), INSTANTS)
def test_several_fields_come_back(shop, number, at):
    kind = record_type(Several)
    found = key_reader(kind.schema)(key_encoder(kind.schema)(Several(shop, number, at)))
    assert (found.shop, found.number, found.at) == (shop, number, at)


@pytest.mark.parametrize("key", [None, b"", b"x", b"[1]", b"\xff"])
def test_what_is_no_key_is_told(key):
    with pytest.raises(DataError):
        key_reader(record_type(Several).schema)(key)
    with pytest.raises(DataError):
        key_reader(of(int).schema)(key)
