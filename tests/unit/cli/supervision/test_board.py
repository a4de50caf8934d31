from penstock.cli.supervision.board import Board
from penstock.core.report import Counts, PartReport


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def report(state="running", reason="", **counts: int) -> PartReport:
    return PartReport(
        part="count",
        kind="service",
        state=state,
        at=0.0,
        reason=reason,
        counts=Counts(**counts),
        lag=3,
        rate_in=5.0,
        detail={"delivery": "exactly once", "listening on": "127.0.0.1:9"},
    )


def test_a_report_is_news_when_state_or_reason_change():
    board = Board([("count", "service")], clock=Clock())
    assert board.take(report())
    assert not board.take(report(received=1, in_flight=1))
    assert board.take(report("degraded", "no contact"))
    assert board.take(report("degraded", "still no contact"))


def test_a_report_of_a_part_nobody_asked_for_is_ignored():
    board = Board([("other", "service")], clock=Clock())
    assert not board.take(report())
    assert [row.part for row in board.rows()] == ["other"]


def test_the_time_in_a_state_counts_from_its_change_not_from_its_reason():
    clock = Clock()
    board = Board([("count", "service")], clock=clock)
    clock.now = 1.0
    board.take(report("degraded", "a"))
    clock.now = 5.0
    board.take(report("degraded", "b"))
    (row,) = board.rows()
    assert row.since == 4.0
    assert not row.healthy


def test_counts_go_on_over_a_restart_without_what_was_in_flight():
    board = Board([("count", "service")], clock=Clock())
    board.take(report(received=10, passed=6, dead_lettered=1, in_flight=3, written=12))
    board.died(["count"], "killed by SIGKILL")
    (row,) = board.rows()
    assert (row.state, row.reason, row.restarts) == ("restarting", "killed by SIGKILL", 1)
    assert row.counts == Counts(received=7, passed=6, dead_lettered=1, written=12)
    board.started(["count"])
    board.take(report(received=3, passed=3, written=3))
    (row,) = board.rows()
    assert row.counts == Counts(received=10, passed=9, dead_lettered=1, written=15)
    assert row.counts.balanced


def test_a_part_without_trouble_shows_the_facts_that_matter():
    board = Board([("count", "service")], clock=Clock())
    board.take(report())
    (row,) = board.rows()
    assert row.reason == "listening on 127.0.0.1:9"
    assert (row.lag, row.rate_in, row.healthy) == (3, 5.0, True)


def test_a_part_that_has_ended_is_well():
    board = Board([("count", "service")], clock=Clock())
    board.take(report("stopped", "the file has ended"))
    board.ended(["count"])
    (row,) = board.rows()
    assert (row.state, row.reason, row.healthy) == ("ended", "the file has ended", True)
