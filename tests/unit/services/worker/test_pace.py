from datetime import timedelta
from math import inf

from penstock.core.settings.settings import ServiceSettings
from penstock.services.worker.pace import CommitSchedule, Portion, longest_interval, longest_slice


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
