from datetime import timedelta

import pytest

from penstock.services.worker.membership import LONGEST_POLL_INTERVAL, PollInterval, trouble_of

MINUTE = timedelta(minutes=1)


def test_a_worker_that_asks_in_time_keeps_its_membership():
    interval = PollInterval("count", MINUTE)
    assert interval.error_after(59.9) is None
    assert interval.allowed == MINUTE


def test_a_worker_that_was_silent_too_long_is_allowed_twice_the_time_it_took():
    interval = PollInterval("count", MINUTE)
    error = interval.error_after(90.0)
    assert error is not None
    assert error.code == "service.slow-call"
    assert "count took 1m30s, and the group waits for 1m00s" in error.message
    assert interval.allowed == 3 * MINUTE
    assert interval.error_after(179.0) is None


def test_the_allowance_stops_growing_at_what_the_client_takes():
    interval = PollInterval("count", MINUTE)
    assert interval.error_after(3 * LONGEST_POLL_INTERVAL.total_seconds()) is not None
    assert interval.allowed == LONGEST_POLL_INTERVAL


@pytest.mark.parametrize(
    ("contact", "setback", "joined", "has_joined", "expected"),
    [
        (None, "", True, True, ""),
        (None, "", False, False, ""),
        (
            None,
            "",
            False,
            True,
            "it was silent too long and lost its partitions; joining demo.count",
        ),
        (None, "no answer", True, True, "it began again and has come no further yet: no answer"),
        (None, "no answer", False, True, "it began again and has come no further yet: no answer"),
        ("Kafka is away", "no answer", False, True, "Kafka is away"),
    ],
)
def test_what_matters_most_is_told_first(contact, setback, joined, has_joined, expected):
    found = trouble_of(
        contact, setback=setback, joined=joined, has_joined=has_joined, group="demo.count"
    )
    assert found.removesuffix(" again") == expected
