from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.units import LONGEST_SPAN, UnitError, duration, duration_text, size, size_text


def test_a_duration_is_read_in_any_unit_and_in_sums():
    assert duration("500ms") == timedelta(milliseconds=500)
    assert duration("1h30m") == timedelta(minutes=90)
    assert duration("1.5 d") == timedelta(hours=36)
    assert duration(timedelta(seconds=3)) == timedelta(seconds=3)


@pytest.mark.parametrize("text", ["", "7", "d", "-1s", "7 parsecs", "1s!", "1s and 2s"])
def test_what_is_not_a_duration_is_refused_with_an_example(text):
    with pytest.raises(UnitError, match=r"write 500ms|known are ms"):
        duration(text)


@pytest.mark.parametrize(
    "given", ["365001d", "3000000d", "999999999d", "9" * 400 + "d", timedelta.max, timedelta.min]
)
def test_a_duration_has_a_longest(given):
    with pytest.raises(UnitError, match="is longer than 365000d"):
        duration(given)
    assert duration("365000d") == LONGEST_SPAN


def test_a_size_is_read_in_binary_and_decimal_units():
    assert size("16MiB") == 16 << 20
    assert size("1GB") == 10**9
    assert size(12) == 12


@pytest.mark.parametrize("text", ["", "12", "1MiBB", "1m"])
def test_what_is_not_a_size_is_refused(text):
    with pytest.raises(UnitError):
        size(text)


@given(st.integers(0, 10**13))
def test_a_duration_survives_its_own_text(milliseconds):
    span = timedelta(milliseconds=milliseconds)
    assert duration(duration_text(span)) == span


@given(st.integers(0, 2**50))
def test_a_size_survives_its_own_text(count):
    assert size(size_text(count)) == count
