import threading
from datetime import timedelta

import pytest

from penstock.connectors.progress import Progress
from penstock.core.status.report import Counts, PartReport
from penstock.errors import ConfigurationError


@pytest.fixture
def reports() -> list[PartReport]:
    return []


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def progress(reports, now) -> Progress:
    return Progress("in", reports.append, clock=lambda: now[0])


def test_lines_in_flight_are_counted_until_they_are_settled(progress):
    progress.took(5)
    assert progress.snapshot().counts == Counts(received=5, in_flight=5)
    progress.settled(passed=2, filtered=1, dead_lettered=1)
    counts = progress.snapshot().counts
    assert counts == Counts(
        received=5, passed=2, filtered=1, dead_lettered=1, in_flight=1, written=2
    )
    assert counts.balanced


def test_lines_that_will_be_read_again_are_forgotten(progress):
    progress.took(5)
    progress.settled(passed=3, filtered=0, dead_lettered=0)
    progress.undone()
    assert progress.snapshot().counts == Counts(received=3, passed=3, written=3)


def test_rates_are_those_since_the_last_report(progress, now):
    progress.snapshot()
    progress.took(10)
    progress.settled(passed=4, filtered=6, dead_lettered=0)
    now[0] += 2
    report = progress.snapshot()
    assert (report.rate_in, report.rate_out) == (5.0, 2.0)


def test_a_long_wait_for_kafka_is_degraded_and_says_how_long(progress, now):
    progress.running()
    with progress.waiting():
        assert progress.snapshot().state == "running"
        now[0] += 7
        report = progress.snapshot()
        assert (report.state, report.reason) == ("degraded", "waiting for Kafka for 7s")
    assert progress.snapshot().state == "running"


def test_it_reports_from_start_to_stop(progress, reports):
    with progress:
        progress.tell("listening on", "127.0.0.1:9")
        progress.running()
        progress.ended("read to its end")
    assert [report.state for report in reports] == ["starting", "stopped"]
    assert reports[-1].reason == "read to its end"
    assert reports[-1].detail == {"listening on": "127.0.0.1:9"}
    assert {report.kind for report in reports} == {"source"}


def test_it_reports_on_its_own_while_the_source_is_busy():
    reported = threading.Semaphore(0)
    with Progress("in", lambda _: reported.release()):
        assert reported.acquire(timeout=60)
        assert reported.acquire(timeout=60)


def test_a_failure_is_the_last_thing_it_reports(progress, reports):
    error = ConfigurationError("no such file", code="source.file-unreadable", hint="look")
    with pytest.raises(ConfigurationError), progress:
        raise error
    assert (reports[-1].state, reports[-1].reason) == ("failed", "no such file")


def test_a_line_that_parse_takes_long_for_is_told_with_its_line_of_code(now):
    progress = Progress(
        "typed", lambda _: None, clock=lambda: now[0], slow_call=timedelta(seconds=5)
    )
    progress.running()
    progress.begin(1234)
    now[0] += 4
    assert progress.snapshot().state == "running"
    now[0] += 2
    found = progress.snapshot()
    assert found.state == "degraded"
    assert "typed is at test_progress.py:" in found.reason
    assert ", with item 1234, since " in found.reason
    progress.finish()
    assert progress.snapshot().state == "running"


def test_lines_that_do_not_get_in_make_the_source_degraded(progress):
    progress.running()
    progress.complain("new connections are refused")
    assert (progress.snapshot().state, progress.snapshot().reason) == (
        "degraded",
        "new connections are refused",
    )
    progress.complain("")
    assert progress.snapshot().state == "running"
