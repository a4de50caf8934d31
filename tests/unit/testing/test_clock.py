from datetime import UTC, datetime, timedelta

import pytest

from penstock.testing.clock import ManualClock

START_AT = datetime(2026, 5, 1, tzinfo=UTC)


def test_the_clock_moves_only_when_told():
    clock = ManualClock(START_AT)
    assert clock() == clock() == START_AT
    clock.advance("1m30s")
    assert clock() == START_AT + timedelta(seconds=90)


def test_the_clock_cannot_go_back():
    with pytest.raises(ValueError, match="cannot go back"):
        ManualClock(START_AT).advance(timedelta(seconds=-1))


def test_a_start_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="no time zone"):
        ManualClock(datetime(2026, 5, 1))  # noqa: DTZ001
