from math import inf

from penstock.services.pace import Pace


def test_nothing_is_committed_before_there_is_something():
    assert Pace(0.1).commit_at == inf


def test_the_first_record_after_a_quiet_time_is_committed_at_once():
    pace = Pace(0.1)
    pace.committed(began=1.0, ended=1.01)
    pace.took(5.0, backlog=False)
    assert pace.commit_at == 5.0


def test_who_keeps_up_commits_an_interval_after_the_last_commit_began():
    pace = Pace(0.1)
    pace.committed(began=1.0, ended=1.02)
    pace.took(1.03, backlog=False)
    pace.took(1.05, backlog=False)
    assert pace.commit_at == 1.1


def test_half_an_interval_is_left_for_work_however_long_commits_take():
    pace = Pace(0.1)
    pace.committed(began=1.0, ended=1.5)
    pace.took(1.5, backlog=False)
    assert pace.commit_at == 1.55


def test_who_is_behind_commits_in_large_pieces():
    pace = Pace(0.1)
    pace.committed(began=1.0, ended=1.02)
    pace.took(5.0, backlog=True)
    assert pace.commit_at == 5.1
    pace.took(5.05, backlog=True)
    assert pace.commit_at == 5.1


def test_a_commit_may_be_wanted_at_once():
    pace = Pace(0.1)
    pace.took(5.0, backlog=True)
    pace.hurry(5.01)
    assert pace.commit_at == 5.01
    pace.committed(began=5.01, ended=5.02)
    assert pace.commit_at == inf
