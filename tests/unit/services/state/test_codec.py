from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from penstock import record
from penstock.core.graph.state import StateSpec
from penstock.errors import ConfigurationError
from penstock.services.state.codec import MARKER_KEY, StateCodec


@record()
class Trend:
    mean: float
    seen: int


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def codec(kind: Any) -> StateCodec:
    return StateCodec(StateSpec("total", kind), changelog="app.count.changelog")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, 2**80),
        (bool, True),
        (float, 1.5),
        (float, 3),
        (str, "grün"),
        (bytes, b"\x00\xff"),
        (list[str], ["a", "b"]),
        (dict[str, int], {"a": 1}),
        (tuple[int, str], (1, "a")),
        (int | None, None),
        (datetime, datetime(2026, 1, 1, tzinfo=UTC)),
        (Trend, Trend(0.5, 2)),
    ],
)
def test_a_value_that_is_accepted_comes_back_as_it_was(kind, value):
    subject = codec(kind)
    assert subject.refuses(value) is None
    assert subject.give(subject.load(subject.json(value), place=b"k")) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, "3"),
        (int, True),
        (int, 3.0),
        (bool, 1),
        (float, "1"),
        (float, float("nan")),
        (float, float("inf")),
        (Decimal, Decimal("NaN")),
        (list[Decimal], [Decimal(1), Decimal("-Infinity")]),
        (float, True),
        (str, 3),
        (str, "\ud800"),
        (list[int], ["a"]),
        (dict[str, int], {"a": None}),
        (Trend, {"mean": 1.0}),
        (Trend, Trend(float("nan"), 1)),
        (str, object()),
        (bytes, "abc"),
        (bytes, bytearray(b"abc")),
    ],
)
def test_a_value_that_could_not_be_restored_is_refused_with_a_reason(kind, value):
    assert codec(kind).refuses(value)


@pytest.mark.parametrize("stored", [b"", b"{", b'"three"', b"null", b"\xff", b"[" * 100_000])
def test_a_stored_value_of_another_type_stops_loudly(stored):
    with pytest.raises(ConfigurationError, match=r"'total' cannot be restored.*b'k'.*changelog"):
        codec(int).load(stored, place=b"k")


def test_the_marker_is_no_key_of_any_state():
    assert not MARKER_KEY.startswith(codec(int).prefix)
    assert MARKER_KEY[0] == 0


def test_a_float_is_held_as_one_and_loses_no_digit():
    assert repr(codec(float).hold(1)) == "1.0"
    assert codec(float).json(1) == b"1.0"
    for value in (2**53 + 1, 10**400, True):
        with pytest.raises(TypeError):
            codec(float).hold(value)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (float, [1, 1.0]),
        (float, [0.0, -0.0, 0]),
        (datetime, [NOON, NOON.astimezone(timezone(timedelta(hours=5)))]),
        (Decimal, [Decimal(100), Decimal("1E+2"), Decimal("100.00")]),
        (Decimal, [Decimal(0), Decimal("-0.0")]),
        (float | str, [1, 1.0]),
    ],
)
def test_names_that_are_equal_are_one_name(kind, names):
    assert len({codec(kind).name(name) for name in names}) == 1


def test_names_that_differ_stay_apart():
    digits = [Decimal("1." + "0" * 40 + digit) for digit in "12"]
    assert len({codec(Decimal).name(name) for name in digits}) == 2
