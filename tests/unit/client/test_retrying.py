from datetime import UTC, datetime, timedelta

import pytest

from penstock.client.limits import ClientLimits
from penstock.client.refusals import retry_after
from penstock.client.retrying import Retries

LIMITS = ClientLimits(
    attempts=4,
    patience=timedelta(seconds=10),
    first_wait=timedelta(seconds=1),
    longest_wait=timedelta(seconds=3),
)


def test_waits_double_up_to_the_longest_and_end_with_the_attempts():
    longest = Retries(LIMITS, lambda: 1.0)
    assert [longest.wait(failures, passed=0) for failures in (1, 2, 3, 4)] == [1, 2, 3, None]
    shortest = Retries(LIMITS, lambda: 0.0)
    assert [shortest.wait(failures, passed=0) for failures in (1, 2, 3)] == [0.5, 1, 1.5]


def test_what_the_gateway_asks_for_is_never_cut_short():
    retries = Retries(LIMITS, lambda: 1.0)
    assert retries.wait(1, passed=0, asked=7) == 7
    assert retries.wait(1, passed=4, asked=7) is None
    assert retries.wait(1, passed=9.5) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        ("", 0.0),
        ("soon", 0.0),
        ("-1", 0.0),
        ("9" * 400, 999999999.0),
        ("Thu, 19 Nov 2026 12:00:05 GMT", 5.0),
        ("Thu, 19 Nov 2026 11:00:00 GMT", 0.0),
        ("Thu, 99 Nov 2026 11:00:00 GMT", 0.0),
    ],
)
def test_a_retry_after_is_seconds_or_a_date(text, seconds):
    now = datetime(2026, 11, 19, 12, tzinfo=UTC)
    assert retry_after({"retry-after": text}, now=now) == seconds
