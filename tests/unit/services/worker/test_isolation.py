from datetime import UTC, datetime, timedelta

from penstock.services.worker.isolation import Care

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


def test_care_is_kept_while_a_share_is_coming_up_and_ends_when_it_has_gone_to_another():
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
