from penstock.cli.supervision.board import SILENT_SECONDS, Board
from penstock.cli.supervision.plan import Unit
from penstock.core.status.report import Counts, PartReport

COUNT = [Unit("count-1", "service", ("count",))]


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
    board = Board(COUNT, clock=Clock())
    assert board.take(report(), process="count-1")
    assert not board.take(report(received=1, in_flight=1), process="count-1")
    assert board.take(report("degraded", "no contact"), process="count-1")
    assert board.take(report("degraded", "still no contact"), process="count-1")


def test_a_report_of_a_part_nobody_asked_for_is_ignored():
    board = Board([Unit("count-1", "service", ("other",))], clock=Clock())
    assert not board.take(report(), process="count-1")
    assert [row.part for row in board.rows()] == ["other"]


def test_the_time_in_a_state_counts_from_its_change_not_from_its_reason():
    clock = Clock()
    board = Board(COUNT, clock=clock)
    clock.now = 1.0
    board.take(report("degraded", "a"), process="count-1")
    clock.now = 5.0
    board.take(report("degraded", "b"), process="count-1")
    (row,) = board.rows()
    assert row.since_seconds == 4.0
    assert not row.healthy


def test_counts_go_on_over_a_restart_without_what_was_in_flight():
    board = Board(COUNT, clock=Clock())
    board.take(
        report(received=10, passed=6, dead_lettered=1, in_flight=3, written=12), process="count-1"
    )
    board.died("count-1", "killed by SIGKILL")
    (row,) = board.rows()
    assert (row.state, row.reason, row.restarts) == ("restarting", "killed by SIGKILL", 1)
    assert row.counts == Counts(received=7, passed=6, dead_lettered=1, written=12)
    board.started("count-1")
    board.take(report(received=3, passed=3, written=3), process="count-1")
    (row,) = board.rows()
    assert row.counts == Counts(received=10, passed=9, dead_lettered=1, written=15)
    assert row.counts.balanced


def test_what_is_told_of_a_change_has_the_counts_of_all_its_processes():
    board = Board(COUNT, clock=Clock())
    board.take(report(received=10, passed=10, written=20), process="count-1")
    board.died("count-1", "killed by SIGKILL")
    news = board.take(report(received=3, passed=3, written=3), process="count-1")
    assert news is not None
    assert (news.counts.received, news.counts.written) == (13, 23)


def test_a_part_has_the_facts_of_its_last_report():
    board = Board(COUNT, clock=Clock())
    board.take(report(), process="count-1")
    (row,) = board.rows()
    assert row.detail["listening on"] == "127.0.0.1:9"
    assert (row.process, row.lag, row.rate_in, row.healthy) == ("count-1", 3, 5.0, True)


def test_processes_of_one_part_are_told_apart():
    board = Board([*COUNT, Unit("count-2", "service", ("count",))], clock=Clock())
    board.take(report(), process="count-1")
    board.take(report(), process="count-2")
    board.died("count-2", "killed by SIGKILL")
    assert [(row.process, row.state) for row in board.rows()] == [
        ("count-1", "running"),
        ("count-2", "restarting"),
    ]


def test_a_part_that_falls_silent_is_not_well():
    clock = Clock()
    board = Board(COUNT, clock=clock)
    board.take(report(), process="count-1")
    clock.now = SILENT_SECONDS - 1
    assert board.rows()[0].healthy
    clock.now = SILENT_SECONDS + 15
    (row,) = board.rows()
    assert (row.state, row.reason) == ("degraded", "it has not reported for 1m15s")
    assert row.silent_seconds == SILENT_SECONDS + 15
    board.take(report(), process="count-1")
    assert board.rows()[0].healthy


def test_a_part_that_has_ended_is_well():
    board = Board(COUNT, clock=Clock())
    board.take(report("stopped", "the file has ended"), process="count-1")
    board.ended("count-1")
    (row,) = board.rows()
    assert (row.state, row.reason, row.healthy) == ("ended", "the file has ended", True)


def test_a_part_that_starts_again_says_why_until_it_runs_and_remembers_it():
    board = Board(COUNT, clock=Clock())
    board.died("count-1", "exit code 1: count raised ValueError: no: at words[0] offset 5")
    assert board.rows()[0].why.startswith("exit code 1: count raised ValueError")
    board.started("count-1")
    (row,) = board.rows()
    assert (row.state, row.healthy) == ("starting", False)
    assert row.why.startswith("restarting after exit code 1: count raised ValueError")
    board.take(report("starting"), process="count-1")
    assert board.rows()[0].why == row.why
    board.take(report(), process="count-1")
    (row,) = board.rows()
    assert (row.state, row.why) == ("running", "")
    assert row.detail["last end"].endswith("at words[0] offset 5")
