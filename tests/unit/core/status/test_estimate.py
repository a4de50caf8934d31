import pytest

from penstock.core.status.estimate import Estimate


def test_nothing_is_said_before_there_is_a_rate():
    estimate = Estimate()
    assert (estimate.rate, estimate.seconds_left) == (None, None)
    estimate.take(0.0, 0, 0)
    assert estimate.seconds_left is None
    estimate.take(0.0, 0, 1000)
    assert (estimate.rate, estimate.seconds_left) == (None, None)
    estimate.take(1.0, 500, 1000)
    assert estimate.seconds_left is None
    estimate.take(2.0, 500, 1000)
    assert estimate.rate == 250
    assert estimate.seconds_left == 2.0


def test_a_total_that_grows_makes_the_rest_longer():
    estimate = Estimate()
    estimate.take(0.0, 0, 100)
    estimate.take(10.0, 50, 100)
    assert estimate.seconds_left == 10.0
    estimate.take(20.0, 100, 300)
    assert estimate.seconds_left == 40.0


def test_only_the_last_while_counts():
    estimate = Estimate()
    for second in range(100):
        estimate.take(float(second), second * 1000, 1_000_000)
    for second in range(100, 140):
        estimate.take(float(second), 99_000 + (second - 99) * 10, 1_000_000)
    assert estimate.rate == pytest.approx(10)


def test_what_stands_still_has_no_estimate_and_what_is_done_has_nothing_left():
    estimate = Estimate()
    for second in range(60):
        estimate.take(float(second), 5, 10)
    assert estimate.seconds_left is None
    estimate.take(61.0, 10, 10)
    assert estimate.seconds_left == 0.0
