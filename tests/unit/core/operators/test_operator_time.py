"""How far event time is over several inputs of an operator."""

from hypothesis import given
from hypothesis import strategies as st

from penstock import record
from penstock.core.operators.eventtime import OperatorTime
from penstock.core.operators.operator import Arrival, Input
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.times import BEGINNING, END
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.records.record import record_type


@record(key="key")
class Thing:
    key: str


def inputs(*rules, sources=()):
    return [
        Input(
            name=f"input{number}",
            topic=f"input{number}",
            kind="stream" if rule else "table",
            record=record_type(Thing),
            max_record_bytes=1000,
            rule=rule,
            sources=sources,
        )
        for number, rule in enumerate(rules)
    ]


def at(time, *, of=0, source="0"):
    return Arrival(of, b"k", None, time, source, 0)


def test_the_slowest_stream_holds_it_back_also_while_it_has_shown_nothing():
    time = OperatorTime(inputs(WatermarkRule(), WatermarkRule(disorder=5)))
    assert time.see(at(100), 0) == BEGINNING
    assert time.see(at(50, of=1), 0) == 45
    assert time.see(at(300, of=1), 0) == 100
    assert time.newest == 300


def test_a_silent_stream_holds_it_back_no_more():
    time = OperatorTime(inputs(WatermarkRule(idle_after=30), WatermarkRule(idle_after=30)))
    assert time.see(at(100), 10) == BEGINNING
    assert time.wakes(100, 10) == 40
    time.see(at(120), 39)
    assert time.value == BEGINNING
    assert time.look(40) == 120


def test_tables_and_streams_that_follow_the_newest_hold_nothing_back():
    newest = WatermarkRule(follows="newest")
    time = OperatorTime(inputs(None, WatermarkRule(), newest))
    assert time.see(at(7), 0) == BEGINNING
    assert time.see(at(100, of=1), 0) == 100
    assert OperatorTime(inputs(newest, newest)).see(at(9, of=1), 0) == 9


def test_a_time_that_is_not_believed_moves_nothing():
    time = OperatorTime(inputs(WatermarkRule(ahead=10)))
    assert not time.believes(at(11), 0)
    assert time.see(at(11), 0) == BEGINNING
    assert time.see(at(10), 0) == 10


def test_it_waits_for_sources_that_are_known_to_come():
    time = OperatorTime(inputs(WatermarkRule(idle_after=30), sources=("0", "1")))
    assert time.see(at(100), 5) == BEGINNING
    assert time.newest == 100
    assert time.see(at(40, source="1"), 5) == 40
    alone = OperatorTime(inputs(WatermarkRule(idle_after=30), sources=("0", "1")))
    alone.see(at(100), 5)
    assert alone.see(at(101), 35) == 101


def test_what_it_is_told_counts_for_every_source():
    time = OperatorTime(inputs(WatermarkRule(disorder=5), WatermarkRule()))
    time.see(at(10), 0)
    assert time.tell(100, 0) == 95
    assert time.see(at(3), 0) == 95
    assert time.finish() == END


RULES = st.one_of(
    st.none(),
    st.builds(
        WatermarkRule,
        disorder=st.integers(0, 20),
        idle_after=st.sampled_from([None, 10, 50]),
        closes_after=st.sampled_from([None, 30]),
        follows=st.sampled_from(["slowest", "newest"]),
    ),
)
EVENTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 500), st.sampled_from("01"), st.integers(0, 20)),
    max_size=30,
)


@given(st.lists(RULES, min_size=3, max_size=3), EVENTS, st.integers(0, 30))
def test_it_never_goes_back_and_goes_on_from_what_it_kept(rules, events, restart):
    whole, broken = OperatorTime(inputs(*rules)), OperatorTime(inputs(*rules))
    clock, before = 0, BEGINNING
    for number, (of, happened, source, passed) in enumerate(events):
        clock += passed
        if number == restart:
            broken = OperatorTime(inputs(*rules), decode(encode(broken.pack())))
        arrival = at(happened, of=of, source=source)
        now = whole.see(arrival, clock)
        assert now == broken.see(arrival, clock)
        assert now >= before
        assert whole.wakes(now + 1, clock) == broken.wakes(now + 1, clock)
        before = now


@given(st.lists(RULES, min_size=3, max_size=3), EVENTS)
def test_it_reaches_nothing_before_it_says_that_it_may(rules, events):
    time, clock = OperatorTime(inputs(*rules)), 0
    for of, happened, source, passed in events:
        clock += passed
        wanted = time.see(at(happened, of=of, source=source), clock) + 50
        wakes = time.wakes(wanted, clock)
        until = clock + 100 if wakes is None else wakes
        for later in range(clock + 1, until):
            assert time.look(later) < wanted
            clock = later


MOMENTS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 500),
        st.sampled_from("01"),
        st.sampled_from([0, 0, 0, 5, 12, 60]),
    ),
    max_size=40,
)


@given(st.lists(RULES, min_size=3, max_size=3), MOMENTS)
def test_while_the_clock_stands_still_it_moves_as_if_all_was_looked_at_each_time(rules, events):
    quick, thorough, clock = OperatorTime(inputs(*rules)), OperatorTime(inputs(*rules)), 0
    for of, happened, source, passed in events:
        clock += passed
        thorough._settle()
        arrival = at(happened, of=of, source=source)
        assert quick.see(arrival, clock) == thorough.see(arrival, clock)
        assert quick.newest == thorough.newest
    assert quick.pack() == thorough.pack()
