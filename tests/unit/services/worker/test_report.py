"""What a service says of itself is a function of how it stands."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from penstock.core.records.deadletter import Coordinates
from penstock.core.status.report import Counts
from penstock.errors import TransientError, UserCodeError
from penstock.services.step.retries import Retried
from penstock.services.worker.report import Restoring, Standing, Teller, error_text

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)


def standing(**facts):
    return Standing(**{"at": NOW_AT, "joined": True} | facts)


def retried(offset, *, failed=2):
    return Retried(
        place=Coordinates("words", 0, offset),
        failed=failed,
        tries=100,
        until=NOW_AT + timedelta(seconds=2),
        reason="count raised",
    )


@pytest.fixture
def teller():
    return Teller("count", delivery="exactly_once", began=100.0)


def test_it_runs_when_the_group_has_let_it_in_and_every_task_is_up(teller):
    assert teller.state(standing(joined=False)) == ("starting", "")
    assert teller.state(standing(restoring=[Restoring(task="0")])) == ("starting", "")
    assert teller.state(standing()) == ("running", "")


def test_trouble_makes_it_degraded_since_the_first_time_it_was_seen(teller):
    assert teller.state(standing(trouble="Kafka is away")) == (
        "degraded",
        "Kafka is away, since 2026-01-01T00:00:00+00:00",
    )
    later = NOW_AT + timedelta(minutes=5)
    again = teller.state(standing(at=later, trouble="Kafka is still away"))
    assert again == ("degraded", "Kafka is still away, since 2026-01-01T00:00:00+00:00")
    assert teller.state(standing()) == ("running", "")
    assert "00:05" in teller.state(standing(at=later, trouble="Kafka is away"))[1]


def test_a_slow_call_says_itself_since_when(teller):
    state, reason = teller.state(standing(slow="count is at app.py:3, since 12:00", trouble="x"))
    assert (state, reason) == ("degraded", "count is at app.py:3, since 12:00")


def test_trouble_of_tasks_is_told_with_their_names_and_no_more_than_a_few(teller):
    found = standing(
        setbacks={"0": "no answer", "1": "no answer"},
        restoring=[Restoring(task="1", trouble="fenced"), Restoring(task="2", trouble="away")],
        retries=[retried(5), retried(6, failed=1), retried(7)],
    )
    assert found.reason() == (
        "partition 0: no answer; partition 1: fenced; partition 2: away; and 2 more"
    )


def test_one_failed_try_is_chance_and_two_are_trouble(teller):
    assert teller.state(standing(retries=[retried(5, failed=1)]))[0] == "running"
    state, reason = teller.state(standing(retries=[retried(5)]))
    assert state == "degraded"
    assert reason.startswith("words[0] offset 5 is tried up to 100 times: count raised")


def test_it_stops_with_the_trouble_it_has(teller):
    assert teller.state(standing(stopping=True, trouble="away")) == ("stopping", "away")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, True),
        ({"retries": [retried(5)]}, True),
        ({"trouble": "away"}, False),
        ({"restoring": [Restoring(task="0", trouble="away")]}, False),
        ({"joined": False}, False),
    ],
)
def test_lag_is_worth_asking_for_where_all_partitions_are_worked_on(teller, facts, expected):
    found = standing(**facts)
    assert found.all_run(teller.state(found)[0]) is expected


def test_rates_are_those_since_the_last_report(teller):
    first = standing(counts=Counts(received=100, passed=100, written=50))
    found = teller.report(first, "running", "", now=102.0)
    assert (found.rate_in, found.rate_out) == (50.0, 25.0)
    fewer = standing(counts=Counts(received=90, passed=90, written=50))  # a task was thrown away
    found = teller.report(fewer, "running", "", now=103.0)
    assert (found.rate_in, found.rate_out) == (0.0, 0.0)


def test_counts_of_panes_never_fall_when_a_task_goes(teller):
    def late(count):
        facts = Counter({"late records": count, "state records": count})
        return teller.report(standing(facts=facts), "running", "", now=101.0).metrics

    late(10)
    found = late(4)
    assert found["late_records_total"] == 10
    assert found["state_records"] == 4


def test_the_detail_names_partitions_restores_and_what_was_skipped(teller):
    found = teller.report(
        standing(
            running=[("words", 1), ("words", 0)],
            restoring=[Restoring(task="2", progress="25%", restored=1, expected=4, seconds_left=3)],
            retries=[retried(5)],
            facts=Counter(keys=7),
            on_disk=True,
            resumed={("words", 0): 12},
            skipped=9,
            last_dead_letter="words[0] offset 3: no",
        ),
        "degraded",
        "x",
        now=101.0,
        lag=4,
    )
    assert found.detail == {
        "delivery": "exactly once",
        "partitions": "words[0], words[1]",
        "restoring": "2: 25%",
        "retrying": "words[0] offset 5, try 3 of 100 in 2s: count raised",
        "keys": "about 7",
        "offsets": "forgotten by the group, the state's own used: words[0] at 12",
        "skipped": "9 offsets, deleted by retention before they were read",
        "last dead letter": "words[0] offset 3: no",
    }
    assert found.lag == 4
    assert found.metrics["restore_left_seconds"] == 3
    assert found.metrics["retrying_partitions"] == 1
    assert found.metrics["skipped_offsets_total"] == 9


def test_why_it_ended_names_the_record_where_it_was_one():
    assert error_text(None) == ""
    assert error_text(TransientError("no answer", code="x")) == "no answer"
    assert error_text(KeyError("a")) == "KeyError('a')"
    stopped = UserCodeError("count raised", topic="words", partition=0, offset=3, record=None)
    assert "offset 3" in error_text(stopped)
