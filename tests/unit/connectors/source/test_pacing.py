from datetime import timedelta

from penstock.connectors.source.pacing import (
    KEEP_SECONDS,
    GivingUp,
    Idle,
    Unsettled,
    slice_seconds,
)


def test_a_slice_lasts_a_second_or_a_quarter_of_the_time_to_stop():
    assert slice_seconds(timedelta(seconds=10)) == 1.0
    assert slice_seconds(timedelta(seconds=2)) == 0.5


def test_a_position_is_written_again_an_hour_after_the_last_commit():
    idle = Idle(0.0)
    idle.committed(10.0)
    assert not idle.keep_due(9.0 + KEEP_SECONDS)
    assert idle.keep_due(10.0 + KEEP_SECONDS)


def test_many_unsettled_items_or_a_short_while_make_a_wait_due():
    unsettled = Unsettled(0.0)
    for _ in range(1_999):
        unsettled.add("passed")
    assert not unsettled.due(0.05)
    assert unsettled.due(0.1)
    unsettled.add("filtered")
    assert unsettled.due(0.0)


def test_what_was_settled_is_counted_once():
    unsettled = Unsettled(0.0)
    unsettled.add("passed")
    unsettled.add("dead_lettered")
    assert unsettled.settle(5.0) == {"passed": 1, "dead_lettered": 1}
    assert len(unsettled) == 0
    assert unsettled.settle(5.0) == {}
    assert not unsettled.due(5.05)


def test_it_waits_for_ever_until_it_is_to_stop_and_then_for_its_time():
    giving_up = GivingUp(timedelta(seconds=3))
    assert not giving_up.due(1e9, stopping=False)
    assert not giving_up.due(2e9, stopping=True)
    assert not giving_up.due(2e9 + 2, stopping=True)
    assert giving_up.due(2e9 + 3, stopping=True)
