from hypothesis import given
from hypothesis import strategies as st

from penstock.core.panes.times import BEGINNING
from penstock.core.panes.watermark import Watermark, WatermarkRule


def test_it_stays_the_disorder_behind_the_newest_event():
    mark = Watermark(WatermarkRule(disorder=10))
    assert mark.at(0) == BEGINNING
    mark.see("a", 100, 0)
    mark.see("a", 95, 0)
    assert mark.at(0) == 90


def test_the_slowest_source_holds_it():
    mark = Watermark(WatermarkRule())
    mark.see("a", 100, 0)
    mark.see("b", 40, 0)
    assert mark.at(0) == 40


def test_a_silent_source_stops_holding_it():
    mark = Watermark(WatermarkRule(idle_after=30))
    mark.see("a", 100, 0)
    mark.see("b", 40, 0)
    mark.see("a", 120, 29)
    assert mark.at(29) == 40
    assert mark.at(30) == 120


def test_when_all_sources_are_silent_it_is_that_of_the_newest_whenever_somebody_looks():
    for looks in ([30, 59, 10**6], [31, 10**6], [10**6]):
        mark = Watermark(WatermarkRule(idle_after=30, disorder=5))
        mark.see("a", 100, 0)
        mark.see("b", 40, 29)
        assert [mark.at(clock) for clock in looks][-1] == 95
        mark.see("b", 50, 10**6)
        assert mark.at(10**6) == 95


def test_it_goes_on_with_the_clock_once_a_stream_that_closes_is_silent():
    mark = Watermark(WatermarkRule(disorder=5, closes_after=30))
    mark.see("a", 100, 0)
    assert mark.at(29) == 95
    assert mark.at(30) == 125
    assert mark.at(40) == 135


def test_it_says_when_it_may_move_without_a_record():
    mark = Watermark(WatermarkRule(idle_after=30))
    assert mark.wakes(200, 10) is None
    mark.see("a", 100, 10)
    assert mark.wakes(200, 10) is None
    mark.see("b", 100, 20)
    assert mark.wakes(200, 20) == 40
    assert mark.wakes(200, 40) == 50
    assert mark.wakes(200, 50) is None
    closing = Watermark(WatermarkRule(closes_after=5, disorder=3))
    closing.see("a", 100, 10)
    assert closing.wakes(101, 10) == 15
    assert closing.wakes(107, 15) == 20
    assert closing.at(19) < 107 <= closing.at(20)


def test_a_source_that_never_idles_waits_for_ever():
    mark = Watermark(WatermarkRule())
    mark.see("a", 100, 0)
    assert mark.at(10**9) == 100


def test_the_far_future_is_not_believed():
    rule = WatermarkRule(ahead=60)
    assert rule.believes(150, 90)
    assert not rule.believes(151, 90)
    assert WatermarkRule().believes(10**18, 0)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99), st.integers(0, 9))),
    st.integers(0, 20),
    st.none() | st.integers(0, 20),
    st.none() | st.integers(0, 20),
)
def test_it_never_goes_back(events, disorder, idle_after, closes_after):
    rule = WatermarkRule(disorder=disorder, idle_after=idle_after, closes_after=closes_after)
    mark = Watermark(rule)
    clock, before = 0, BEGINNING
    for source, time, passed in events:
        clock += passed
        mark.see(source, time, clock)
        now = mark.at(clock)
        assert now >= before
        before = now
