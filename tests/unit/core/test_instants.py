"""The range of instants: one place knows it, and it is what Python can hold."""

import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

import penstock
from penstock.core import instants
from penstock.core.instants import (
    FIRST_DAY,
    FIRST_MICROS,
    FIRST_MILLIS,
    LAST_DAY,
    LAST_MICROS,
    LAST_MILLIS,
    instant,
    micros,
)

SOURCE = Path(penstock.__file__).parent


def test_the_first_and_the_last_instant_are_those_of_the_years_1_and_9999():
    assert instant(FIRST_MICROS) == datetime(1, 1, 1, tzinfo=UTC)
    assert instant(LAST_MICROS) == datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert (FIRST_MILLIS * 1000, LAST_MILLIS * 1000 + 999) == (FIRST_MICROS, LAST_MICROS)
    epoch = date(1970, 1, 1)
    assert ((date.min - epoch).days, (date.max - epoch).days) == (FIRST_DAY, LAST_DAY)


@pytest.mark.parametrize("beyond", [FIRST_MICROS - 1, LAST_MICROS + 1])
def test_there_is_no_instant_beyond_them(beyond):
    with pytest.raises(OverflowError):
        instant(beyond)


def test_an_instant_and_its_microseconds_are_the_same_in_both_directions():
    for at in (FIRST_MICROS, -1, 0, 1, LAST_MICROS):
        assert micros(instant(at)) == at


def test_no_other_module_knows_them():
    own = re.compile(r"\b253_?402|\b62_?135_?596|\bdate(time)?\.(min|max)\b")
    modules = [path for path in SOURCE.rglob("*.py") if own.search(path.read_text())]
    assert modules == [Path(instants.__file__)]
