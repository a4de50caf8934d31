from penstock.core.status.rates import Rates
from penstock.core.status.report import Counts


def counts(received: int, written: int) -> Counts:
    return Counts(received=received, passed=received, written=written)


def test_a_rate_is_what_came_since_the_last_question():
    rates = Rates(100.0)
    assert rates.since_last(counts(40, 10), at=110.0) == (4.0, 1.0)
    assert rates.since_last(counts(50, 10), at=112.0) == (5.0, 0.0)


def test_counts_that_go_back_are_no_negative_rate():
    rates = Rates(0.0)
    rates.since_last(counts(40, 10), at=1.0)
    assert rates.since_last(counts(0, 0), at=2.0) == (0.0, 0.0)


def test_two_questions_at_one_instant_divide_by_no_zero():
    rates = Rates(5.0)
    received, written = rates.since_last(counts(1, 0), at=5.0)
    assert received > 0
    assert written == 0
