from datetime import timedelta

import pytest

from penstock.core.backoff import Backoff
from penstock.errors import TransientError
from penstock.pipelines.execution.recovery import Recovery

TROUBLE = TransientError("the broker is away", code="kafka.unreachable")


@pytest.fixture
def recovery() -> Recovery:
    return Recovery(
        Backoff(timedelta(seconds=1), timedelta(seconds=4)), limit=timedelta(seconds=60)
    )


def waits(recovery: Recovery, *, number: int, now: float = 0.0) -> list[float]:
    return [recovery.wait_after(TROUBLE, now) for _ in range(number)]


def test_failures_in_a_row_are_answered_with_growing_waits(recovery):
    assert waits(recovery, number=4, now=100.0) == [1, 2, 4, 4]
    assert recovery.trouble is TROUBLE
    assert recovery.is_waiting(103.9)
    assert not recovery.is_waiting(104.0)


def test_nothing_waits_after_a_start(recovery):
    assert not recovery.is_waiting(0.0)
    waits(recovery, number=1)
    recovery.started()
    assert (recovery.trouble, recovery.is_waiting(0.5)) == (None, False)


def test_failures_last_too_long_counted_from_the_first_of_the_row(recovery):
    assert [recovery.has_lasted(now) for now in (10.0, 69.9, 70.1)] == [False, False, True]


@pytest.mark.parametrize(
    ("looks", "over"),
    [
        ([(20.0, True, True)], True),
        ([(20.0, True, False), (27.9, True, False)], False),
        ([(20.0, True, False), (28.1, True, False)], True),
        ([(20.0, True, False), (24.0, False, False), (28.1, True, False)], False),
    ],
    ids=["a batch is done", "it ran for a moment", "it ran for long", "it was degraded meanwhile"],
)
def test_a_row_of_failures_is_over_once_it_has_advanced_or_run_well_for_long(recovery, looks, over):
    recovery.has_lasted(10.0)
    waits(recovery, number=2, now=10.0)
    recovery.started()
    for now, running, advanced in looks:
        recovery.look(now, running=running, advanced=advanced)
    assert recovery.has_lasted(75.0) is not over
    assert waits(recovery, number=1) == [1 if over else 4]
