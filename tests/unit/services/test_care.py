from penstock.services.care import Care

ZERO, ONE = ("words", 0), ("words", 1)


def test_care_is_taken_up_to_where_it_took_too_long():
    care = Care()
    assert not care
    care.learn({ZERO: 16, ONE: 3})
    care.passed({ZERO: 15, ONE: 3}, timers_due=False)
    assert care
    care.passed({ZERO: 16, ONE: 3}, timers_due=False)
    assert not care


def test_care_is_kept_while_a_share_is_coming_up_and_ends_when_it_has_gone_to_another():
    care = Care()
    care.learn({ZERO: 16})
    care.passed({ZERO: None}, timers_due=False)
    assert care
    care.passed({ONE: 1}, timers_due=False)
    assert not care


def test_care_is_taken_until_every_timer_that_was_due_has_gone_off():
    care = Care()
    care.learn({})
    care.passed({}, timers_due=True)
    assert care
    care.passed({}, timers_due=False)
    assert not care


def test_a_record_that_is_tried_again_does_not_make_the_others_wait_for_care():
    care = Care()
    care.learn({ZERO: 16})
    care.passed({ZERO: 5}, timers_due=False)
    assert care.needed(())
    assert not care.needed({ZERO})
