import threading

import pytest

from penstock.connectors.progress import Progress
from penstock.connectors.retrying import Retries, keep_trying
from penstock.errors import ConfigurationError, TransientError


def test_waits_grow_up_to_a_bound_and_end_after_twenty_failures():
    retries = Retries()
    waits = [retries.failed() for _ in range(21)]
    assert waits[:5] == [0.2, 0.4, 0.8, 1.6, 3.2]
    assert set(waits[5:20]) == {5.0}
    assert waits[20] is None


def test_a_system_that_is_away_is_waited_for_without_an_end():
    retries = Retries()
    waits = [retries.failed(away=True) for _ in range(200)]
    assert waits[-1] == 5.0


def test_a_success_begins_the_count_of_failures_anew():
    retries = Retries()
    for _ in range(20):
        retries.failed()
    retries.succeeded()
    assert retries.failed() == 0.2


class Sessions:
    """Sessions that fail with these errors, one after another, and then end."""

    def __init__(self, *errors: Exception) -> None:
        self.left = list(errors)
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        if self.left:
            raise self.left.pop(0)


AWAY = TransientError("it is away", code="test.away")


def test_what_is_transient_is_tried_again_and_reported_meanwhile():
    sessions, progress = Sessions(AWAY, AWAY), Progress("in", lambda _: None)
    progress.took(3)
    keep_trying(sessions, retries=Retries(), stop=threading.Event(), progress=progress)
    assert sessions.count == 3
    report = progress.snapshot()
    assert (report.state, report.reason, report.counts.received) == ("degraded", "it is away", 0)


def test_any_other_error_ends_it_at_once():
    sessions = Sessions(ConfigurationError("no", code="test.no"))
    with pytest.raises(ConfigurationError):
        keep_trying(
            sessions,
            retries=Retries(),
            stop=threading.Event(),
            progress=Progress("in", lambda _: None),
        )


def test_nothing_is_begun_after_a_stop():
    sessions, stop = Sessions(), threading.Event()
    stop.set()
    keep_trying(sessions, retries=Retries(), stop=stop, progress=Progress("in", lambda _: None))
    assert sessions.count == 0
