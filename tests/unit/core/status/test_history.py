"""The numbers of the last hour: bounded, with gaps where nothing was known, and where a lag goes."""

import pytest

from penstock.core.status.history import (
    EVERY_SECONDS,
    KEPT,
    MOST_SERIES,
    History,
    Series,
    Trend,
    trend,
)

LAG = Series("count", "lag")


def test_the_newest_samples_are_kept_in_their_order_and_no_more():
    history = History()
    for number in range(KEPT + 10):
        history.take(float(number), {LAG: float(number)})
    assert history.times() == [float(number) for number in range(10, KEPT + 10)]
    assert history.values(LAG) == history.times()


def test_what_was_not_known_is_a_gap_and_what_ended_is_forgotten_after_an_hour():
    history = History()
    history.take(0.0, {LAG: 5.0})
    history.take(1.0, {})
    history.take(2.0, {LAG: 7.0})
    assert history.values(LAG) == [5.0, None, 7.0]
    assert history.values(LAG, last=2) == [None, 7.0]
    assert history.values(Series("none", "lag")) == [None, None, None]
    for number in range(2 * KEPT):
        history.take(float(number), {Series("other", "lag"): 1.0})
    assert history.names == (Series("other", "lag"),)


def test_more_numbers_than_the_limit_are_not_followed():
    history = History()
    history.take(0.0, {Series(str(number), "in"): 1.0 for number in range(MOST_SERIES + 5)})
    assert len(history.names) == MOST_SERIES


def test_the_last_minute_is_what_a_trend_is_read_from():
    history = History()
    for number in range(100):
        history.take(number * EVERY_SECONDS, {LAG: float(number)})
    lately = history.lately(LAG, seconds=60.0)
    assert lately == [(number * EVERY_SECONDS, float(number)) for number in range(87, 100)]
    assert history.lately(Series("none", "lag")) == []


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        ([], Trend("unknown")),
        ([(0.0, 9.0)], Trend("unknown")),
        ([(0.0, 9.0), (60.0, 0.0)], Trend("empty")),
        ([(0.0, 1000.0), (60.0, 1005.0)], Trend("steady")),
        ([(0.0, 900.0), (60.0, 300.0)], Trend("falling", -10.0, 30.0)),
        ([(0.0, 300.0), (60.0, 900.0)], Trend("growing", 10.0)),
    ],
)
def test_a_trend_says_when_a_lag_is_empty_or_how_fast_it_grows(samples, found):
    assert trend(samples) == found
