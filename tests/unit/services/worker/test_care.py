from datetime import UTC, datetime, timedelta

from penstock.services.worker.care import Care

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ZERO, ONE = ("words", 0), ("words", 1)


def test_care_is_taken_up_to_where_it_took_too_long():
    care = Care()
    assert not care
    care.learn({ZERO: 16, ONE: 3}, now_at=NOON)
    care.passed({ZERO: 15, ONE: 3}, wakes_at=None)
    assert care
    care.passed({ZERO: 16, ONE: 3}, wakes_at=None)
    assert not care


def test_care_is_kept_while_a_task_is_coming_up_and_ends_when_it_has_gone_to_another():
    care = Care()
    care.learn({ZERO: 16}, now_at=NOON)
    care.passed({ZERO: None}, wakes_at=None)
    assert care
    care.passed({ONE: 1}, wakes_at=None)
    assert not care


def test_care_is_taken_until_every_timer_that_was_due_has_gone_off():
    care = Care()
    care.learn({}, now_at=NOON)
    care.passed({}, wakes_at=NOON)
    assert care
    care.passed({}, wakes_at=None)
    assert not care


def test_a_record_that_is_tried_again_does_not_make_the_others_wait_for_care():
    care = Care()
    care.learn({ZERO: 16}, now_at=NOON)
    care.passed({ZERO: 5}, wakes_at=None)
    assert care.needed(())
    assert not care.needed({ZERO})


def test_timers_that_became_due_since_keep_nobody_careful():
    care = Care()
    care.learn({}, now_at=NOON)
    care.passed({}, wakes_at=NOON + timedelta(seconds=1))
    assert not care


def test_what_failed_after_half_of_the_time_out_is_taken_care_of():
    care = Care(timedelta(seconds=10))
    care.begin(100.0)
    care.begin(104.0)  # later work belongs to the same commit
    care.failed({ZERO: 7}, now=104.9, now_at=NOON)
    assert not care
    care.failed({ZERO: 7}, now=105.1, now_at=NOON)
    assert care.needed(())
    care.passed({ZERO: 7}, wakes_at=None)
    assert not care


def test_what_is_committed_or_came_to_nothing_is_not_blamed_for_what_fails_later():
    care = Care(timedelta(seconds=10))
    assert care.clean
    care.begin(100.0)
    assert not care.clean
    care.forget()
    care.failed({ZERO: 7}, now=200.0, now_at=NOON)
    assert not care


def test_work_outside_of_a_transaction_needs_no_care():
    care = Care(None)
    care.begin(100.0)
    care.failed({ZERO: 7}, now=1000.0, now_at=NOON)
    assert not care
