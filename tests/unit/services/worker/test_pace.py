from dataclasses import replace
from datetime import timedelta
from math import inf

import pytest

from penstock import App, record
from penstock.core.settings.settings import ServiceSettings
from penstock.services.worker.pace import (
    CommitSchedule,
    Portion,
    commit_interval,
    longest_interval,
    longest_slice,
    portion_of,
    seconds_to_wait,
)


@record(key="word")
class Word:
    word: str


def test_nothing_is_committed_before_there_is_something():
    assert CommitSchedule(0.1).commit_at == inf


def test_the_first_record_after_a_quiet_time_is_committed_at_once():
    pace = CommitSchedule(0.1)
    pace.committed(began=1.0, ended=1.01)
    pace.took(5.0, backlog=False)
    assert pace.commit_at == 5.0


def test_who_keeps_up_commits_an_interval_after_the_last_commit_began():
    pace = CommitSchedule(0.1)
    pace.committed(began=1.0, ended=1.02)
    pace.took(1.03, backlog=False)
    pace.took(1.05, backlog=False)
    assert pace.commit_at == 1.1


def test_half_an_interval_is_left_for_work_however_long_commits_take():
    pace = CommitSchedule(0.1)
    pace.committed(began=1.0, ended=1.5)
    pace.took(1.5, backlog=False)
    assert pace.commit_at == 1.55


def test_who_is_behind_commits_in_large_pieces():
    pace = CommitSchedule(0.1)
    pace.committed(began=1.0, ended=1.02)
    pace.took(5.0, backlog=True)
    assert pace.commit_at == 5.1
    pace.took(5.05, backlog=True)
    assert pace.commit_at == 5.1


def test_an_interval_of_minutes_is_kept_whatever_comes_meanwhile():
    pace = CommitSchedule(45.0)
    pace.committed(began=1.0, ended=1.02)
    for second in range(2, 46):
        pace.took(float(second), backlog=second % 2 == 0)
        assert pace.commit_at > second
    assert pace.commit_at == 46.0


def test_slow_records_are_taken_in_smaller_portions_and_quick_ones_in_larger_again():
    portion = Portion(2000, seconds=0.1)
    portion.took(2.5, records=125)
    assert portion.count == 5
    portion.took(0.1, records=5)
    assert portion.count == 5
    portion.took(0.04, records=5)
    assert portion.count == 10
    for _ in range(20):
        portion.took(0.001, records=portion.count)
    assert portion.count == 2000


def test_a_portion_is_one_record_at_least_and_as_many_as_are_handled_at_a_time():
    alone, together = Portion(2000, seconds=0.1), Portion(2000, seconds=0.1, least=16)
    for portion in (alone, together):
        portion.took(45.0, records=1)
    assert (alone.count, together.count) == (1, 16)


def test_few_records_say_nothing_about_how_many_could_be_taken():
    portion = Portion(2000, seconds=0.1)
    portion.took(1.0, records=1000)
    portion.took(0.0, records=3)
    assert portion.count == 100


def test_work_and_the_wait_for_a_commit_fit_into_every_time_out():
    settings = ServiceSettings(commit_interval=timedelta(seconds=45))
    bounds = settings.transaction_timeout, settings.poll_interval, settings.stop_timeout
    assert longest_interval(settings) + longest_slice(settings) <= settings.transaction_timeout / 2
    assert longest_slice(settings) <= min(bounds) / 2


@pytest.mark.parametrize(
    ("commit_at", "coming_up", "wakes_in", "expected"),
    [
        (inf, False, None, 0.25),
        (inf, True, None, 0.02),
        (10.1, False, None, 0.1),
        (9.0, False, None, 0.0),
        (inf, False, 0.05, 0.05),
        (inf, False, -3.0, 0.0),
        (10.01, True, 0.05, 0.01),
    ],
)
def test_a_worker_waits_no_longer_than_until_something_is_due(
    commit_at, coming_up, wakes_in, expected
):
    found = seconds_to_wait(10.0, commit_at=commit_at, coming_up=coming_up, wakes_in=wakes_in)
    assert found == pytest.approx(expected)


def test_results_wait_for_a_part_of_the_time_out_only_where_they_are_in_a_transaction():
    settings = ServiceSettings(
        commit_interval=timedelta(minutes=5), transaction_timeout=timedelta(minutes=1)
    )
    app = App("demo")
    words = app.stream("words", Word)

    @app.service(reads=words)
    def exactly(word: Word) -> None: ...

    @app.service(reads=words, delivery="at_least_once")
    def least(word: Word) -> None: ...

    @app.service(reads=words, concurrency=50)
    async def several(word: Word) -> None: ...

    checks = app.questions("checks", Word, answers=Word)

    @app.service(answers=checks)
    def asked(word: Word) -> Word: ...

    assert commit_interval(asked, settings) == timedelta(milliseconds=20), "somebody waits"
    quick = replace(settings, commit_interval=timedelta(milliseconds=5))
    assert commit_interval(asked, quick) == timedelta(milliseconds=5)
    app.live_queries("follow", app.table("known", Word))
    live = next(part for part in app.graph.parts if part.name == "follow.news.filling")
    assert commit_interval(live, settings) == timedelta(milliseconds=5), "somebody looks at it"
    assert commit_interval(exactly, settings) == timedelta(seconds=15)
    assert commit_interval(least, settings) == timedelta(minutes=5)
    slow = portion_of(several, settings)
    slow.took(1000.0, records=slow.count)
    assert slow.count == 50
    alone = portion_of(exactly, settings)
    alone.took(1e9, records=alone.count)
    assert alone.count == 1
