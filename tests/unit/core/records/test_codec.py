import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import limits, record
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type
from penstock.errors import DataError


@record(key="name", time="at")
class Sample:
    name: str
    at: datetime
    count: int
    ratio: Annotated[float, limits(ge=0, le=1)] = 0.5
    kind: Literal["a", "b"] = "a"
    note: str | None = None
    payload: bytes = b""
    day: date | None = None
    price: Decimal | None = None
    rate: Decimal = Decimal("0.10")
    parts: dict[str, list[int]] = {}  # noqa: RUF012 - copied by the record type


CODEC = JsonCodec(record_type(Sample), max_bytes=10_000)
GOOD = {"name": "x", "at": "2026-01-01T00:00:00Z", "count": 3}


def refused(value: bytes | None) -> str:
    with pytest.raises(DataError) as caught:
        CODEC.decode(value)
    return caught.value.code


def changed(**fields) -> bytes:
    return json.dumps(GOOD | fields).encode()


samples = st.builds(
    Sample,
    name=st.text(max_size=20),
    at=st.datetimes(
        min_value=datetime(1970, 1, 2),  # noqa: DTZ001 - the strategy adds the zone
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
    ),
    count=st.integers(-(2**63), 2**63 - 1),
    ratio=st.floats(0, 1),
    kind=st.sampled_from(["a", "b"]),
    note=st.none() | st.text(max_size=5),
    payload=st.binary(max_size=20),
    day=st.none() | st.dates(),
    price=st.none() | st.decimals(-(10**15), 10**15, places=6),
    parts=st.dictionaries(st.text(max_size=3), st.lists(st.integers(-9, 9), max_size=3)),
)


@given(samples)
def test_a_record_survives_the_log(sample):
    assert CODEC.accept(CODEC.key(sample), CODEC.encode(sample)) == sample


def test_fields_nobody_declared_are_ignored():
    assert CODEC.decode(changed(colour="red", nested={"a": [1]})).count == 3


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "data.null-value"),
        (b"", "data.not-json"),
        (b"\x00\xff", "data.not-json"),
        (b'{"name": "x"', "data.not-json"),
        (b"[1, 2]", "data.wrong-type"),
        (changed() + b" extra", "data.not-json"),
        (changed(count=float("nan")), "data.not-json"),
        (changed(name="x").replace(b'"x"', b'"\xff"'), "data.not-json"),
        (b'{"x":' + b"[" * 4000 + b"]" * 4000 + b"}", "data.too-deep"),
        (changed(note="y" * 10_000), "data.too-large"),
        (changed(name=None), "data.wrong-type"),
        (changed(count="3"), "data.wrong-type"),
        (changed(count=3.5), "data.wrong-type"),
        (changed(count=2**63), "data.invalid-value"),
        (changed(at="2026-01-01T00:00:00"), "data.invalid-value"),
        (changed(at="yesterday"), "data.invalid-value"),
        (changed(at=1767225600), "data.wrong-type"),
        (changed(ratio=1.5), "data.invalid-value"),
        (changed(kind="c"), "data.invalid-value"),
        (changed(payload="not base64!"), "data.invalid-value"),
        (changed(price="1e30"), "data.invalid-value"),
        (changed(price="NaN"), "data.invalid-value"),
        (changed(price="0.0000000000000000001"), "data.invalid-value"),
        (b'{"name": "x", "count": 3}', "data.missing-field"),
    ],
)
def test_what_is_not_a_record_is_refused_with_a_code(value, code):
    assert refused(value) == code


def test_the_key_on_the_log_must_be_the_records_own():
    value = changed()
    assert CODEC.accept(b"x", value).name == "x"
    for key, code in [(None, "data.null-key"), (b"y", "data.key-mismatch")]:
        with pytest.raises(DataError) as caught:
            CODEC.accept(key, value)
        assert caught.value.code == code


def test_a_record_too_large_for_its_stream_is_not_written():
    with pytest.raises(DataError) as caught:
        CODEC.encode(Sample("x" * 20_000, datetime.now(UTC), 1))
    assert caught.value.code == "data.too-large"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("text",), "wörd".encode()),
        (("number",), b"-7"),
        (("yes",), b"true"),
        (("day",), b"2026-01-02"),
        (("text", "number"), '["wörd",-7]'.encode()),
    ],
)
def test_a_key_is_plain_text_and_several_are_an_array(fields, expected):
    @record(key=fields)
    class Keyed:
        text: str
        number: int
        yes: bool
        day: date

    codec = JsonCodec(record_type(Keyed))
    assert codec.key(Keyed("wörd", -7, True, date(2026, 1, 2))) == expected  # noqa: FBT003


def test_a_type_without_key_has_none():
    @record()
    class Free:
        x: int

    codec = JsonCodec(record_type(Free))
    assert codec.key(Free(1)) is None
    assert codec.accept(b"anything", b'{"x": 1}') == Free(1)


def test_a_key_of_the_wrong_type_is_a_data_error():
    with pytest.raises(DataError) as caught:
        CODEC.key(Sample(5, datetime.now(UTC), 1))
    assert caught.value.code == "data.not-encodable"


@record(key=("at", "day"))
class Slot:
    at: datetime
    day: date


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("2026-01-01T13:00:00+01:00", "2026-01-01T12:00:00Z"),
        ("2026-01-01T12:00:00.500Z", "2026-01-01T12:00:00.500000Z"),
        ("2025-12-31T23:30:00-12:30", "2026-01-01T12:00:00Z"),
        ("0001-01-01T18:00:00+18:00", "0001-01-01T00:00:00Z"),
    ],
)
def test_an_instant_has_one_key_however_it_is_written(text, key):
    @record(key="at")
    class Tick:
        at: datetime

    codec = JsonCodec(record_type(Tick))
    value = b'{"at":"%s"}' % text.encode()
    assert codec.key(codec.decode(value)) == key.encode()
    assert codec.accept(key.encode(), value).at == datetime.fromisoformat(text)
    if text[:19] != key[:19]:
        with pytest.raises(DataError) as caught:
            codec.accept(text.encode(), value)
        assert caught.value.code == "data.key-mismatch"


def test_an_instant_among_several_key_fields_is_in_utc_too():
    slot = Slot(datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))), date(2026, 1, 1))
    key = JsonCodec(record_type(Slot)).key(slot)
    assert key == b'["2026-01-01T12:00:00Z","2026-01-01"]'


@pytest.mark.parametrize(
    "at",
    [
        datetime(2026, 1, 1),  # noqa: DTZ001 - that it has no zone is the point
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_an_instant_that_is_none_in_utc_is_no_key(at):
    with pytest.raises(DataError) as caught:
        JsonCodec(record_type(Slot)).key(Slot(at, date(2026, 1, 1)))
    assert caught.value.code == "data.not-encodable"


@record()
class Bounded:
    low: Annotated[int, limits(ge=0)] = 0
    high: Annotated[int | None, limits(lt=10)] = None
    inside: Annotated[int, limits(gt=-5, le=5)] = 0


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("low", [0, 2**63 - 1], [-1, 2**63]),
        ("high", [9, -(2**63), None], [10, -(2**63) - 1]),
        ("inside", [-4, 5], [-5, 6]),
    ],
)
def test_limits_of_an_int_hold_beside_its_64_bits(field, good, bad):
    codec = JsonCodec(record_type(Bounded))
    for value in good:
        assert getattr(codec.decode(json.dumps({field: value}).encode()), field) == value
    for value in bad:
        with pytest.raises(DataError):
            codec.decode(json.dumps({field: value}).encode())


@pytest.mark.parametrize(
    "price",
    [
        "1e9999999",
        "1e-9999999",
        "-1e999999999999",
        "0e9999999",
        "0E-1001",
        "NaN",
        "sNaN",
        "-Infinity",
        "100000000000000000000",
        "1e20",
        "0.0000000000000000001",
        "9" * 5000,
        "12345678901234567890.1234567890123456789012345",
    ],
)
def test_a_decimal_that_no_engine_can_hold_is_refused(price):
    assert refused(changed(price=price)) == "data.invalid-value"


@pytest.mark.parametrize(
    "price",
    [
        "99999999999999999999.999999999999999999",
        "-0.000000000000000001",
        "1E+19",
        "0E+30",
        "0E-1000",
        "1." + "0" * 900,
        "-0",
    ],
)
def test_a_decimal_that_every_engine_can_hold_is_admitted_however_it_is_written(price):
    assert CODEC.decode(changed(price=price)).price == Decimal(price)


@pytest.mark.parametrize(
    "at",
    [
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-05:00",
        "9999-12-31T23:59:59.9999999Z",
        "2026-01-01T00:00:00+18:01",
        "2026-01-01T00:00:00-23:59",
    ],
)
def test_an_instant_that_leaves_the_years_of_utc_or_javas_zones_is_refused(at):
    assert refused(changed(at=at)) == "data.invalid-value"


@pytest.mark.parametrize(
    "at",
    [
        "0001-01-01T00:00:00-18:00",
        "0001-01-01T18:00:00+18:00",
        "9999-12-31T23:59:59+00:01",
        "9999-12-31T18:59:59-05:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
    ],
)
def test_an_instant_at_the_edges_of_utc_is_admitted(at):
    assert CODEC.decode(changed(at=at)).at == datetime.fromisoformat(at)


@pytest.mark.parametrize(
    ("millis", "good"),
    [
        (-62135596800001, False),
        (-62135596800000, True),
        (253402300799999, True),
        (253402300800000, False),
    ],
)
def test_an_event_time_in_milliseconds_has_the_years_of_an_instant(millis, good):
    @record(time="at")
    class Timed:
        at: Annotated[int, limits(ge=-(10**15), lt=10**15)]
        other: int = 0

    codec = JsonCodec(record_type(Timed))
    value = json.dumps({"at": millis, "other": 2**63 - 1}).encode()
    if good:
        assert codec.decode(value).at == millis
    else:
        with pytest.raises(DataError):
            codec.decode(value)


@pytest.mark.parametrize(
    "price", ["1_0", "_1", "1e_+5", " 1", "1 ", "1.5\n", "1\u2009", "\uff11", "\u0661.5"]
)
def test_a_decimal_is_written_as_numbers_are_outside_python(price):
    assert refused(changed(price=price)) == "data.invalid-value"
    escaped = "".join(f"\\u{ord(each):04x}" for each in price)
    assert refused(changed(price="?").replace(b"?", escaped.encode())) == "data.invalid-value"


def test_odd_texts_beside_a_decimal_are_no_harm():
    value = json.dumps(GOOD | {"price": "1.5", "note": " 1_0 \n\uff11"}, ensure_ascii=False)
    assert CODEC.decode(value.encode()).price == Decimal("1.5")
