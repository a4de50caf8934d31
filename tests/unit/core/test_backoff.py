import itertools
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.backoff import Backoff

SPANS = st.timedeltas(min_value=timedelta(), max_value=timedelta(days=3650))
BACKOFF = Backoff(timedelta(milliseconds=100), timedelta(seconds=5))


def test_waits_double_up_to_a_limit():
    assert list(itertools.islice(BACKOFF.delays(), 8)) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@given(first=SPANS, longest=SPANS, failures=st.integers(1, 10**6))
def test_no_wait_is_longer_than_the_longest_or_shorter_than_the_one_before(
    first, longest, failures
):
    backoff = Backoff(first, longest)
    waits = [backoff.delay(failures + more) for more in range(3)]
    assert waits == sorted(waits)
    assert min(first, longest) <= waits[0] <= longest


def test_after_a_good_while_the_next_failure_is_the_first():
    assert not BACKOFF.is_over(10.0)
    assert BACKOFF.is_over(10.1)
