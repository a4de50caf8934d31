"""What a trigger remembers from pane to pane, and when windows merge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.aggregates.collect import Collect
from penstock.core.panes.machine import KeyState, PaneMachine, Windowing
from penstock.core.panes.times import At
from penstock.core.panes.triggers import (
    AfterCount,
    AfterDelay,
    AfterWatermark,
    AllOf,
    AnyOf,
    InOrder,
    Never,
    Repeat,
    Until,
)
from penstock.core.panes.windows import FixedWindows, SessionWindows


def shown(windowing, *steps):
    """Run batches of event times, watermarks and clocks; return panes as (timing, values)."""
    machine, key, at = PaneMachine(windowing, Collect()), KeyState(), At()
    panes = []
    for step in steps:
        if isinstance(step, list):
            outcome = machine.add(key, [(time, time) for time in step], at)
        else:
            at = at._replace(**step)
            outcome = machine.advance(key, at)
        panes += outcome.panes
    return [(pane.timing, pane.value) for pane in panes]


def sessions(trigger, **rest):
    return Windowing(windows=SessionWindows(10), trigger=trigger, lateness=100, **rest)


def fixed(trigger, **rest):
    return Windowing(windows=FixedWindows(100), trigger=trigger, lateness=100, **rest)


def test_a_session_that_grew_past_the_watermark_waits_for_its_end_again():
    trigger = AfterWatermark(early=AfterCount(9), late=AfterCount(1))
    panes = shown(sessions(trigger), [3], {"watermark": 13}, [8], [9], {"watermark": 19}, [4])
    assert panes == [
        ("on_time", [3]),
        ("on_time", [3, 8, 9]),
        ("late", [3, 4, 8, 9]),
    ]


def test_a_session_stays_late_while_it_grows_behind_the_watermark():
    trigger = AfterWatermark(early=AfterCount(9), late=AfterCount(2))
    panes = shown(sessions(trigger), [3], {"watermark": 30}, [8], [9])
    assert panes == [("on_time", [3]), ("late", [3, 8, 9])]


@pytest.mark.parametrize(
    ("kind", "third"),
    # The end of `until` looks at the whole window, so for it the third element is the third.
    [(AnyOf, []), (Until, [("early", [3])])],
)
def test_a_pane_takes_away_what_the_others_have_counted(kind, third):
    trigger = kind((Repeat(AfterCount(2)), Repeat(AfterCount(3))))
    panes = shown(fixed(trigger, mode="discarding"), [1], [2], [3])
    assert panes == [("early", [1, 2]), *third]


def test_a_pane_of_another_finishes_no_part_of_all():
    both = AllOf((AfterCount(1), AfterDelay(5)))
    trigger = AnyOf((both, Repeat(AfterCount(2))))
    panes = shown(fixed(trigger, mode="discarding"), [1], [2], {"clock": 9}, [3], {"clock": 15})
    assert panes == [("early", [1, 2]), ("early", [3])]


def test_triggers_in_order_count_from_the_pane_that_was_the_turn():
    trigger = InOrder((AfterCount(1), AfterDelay(5), AfterCount(2)))
    steps = [[1], {"clock": 4}, [2], {"clock": 9}, {"clock": 10}, [3], [4], [5]]
    panes = shown(fixed(trigger, mode="discarding"), *steps)
    assert panes == [("early", [1]), ("early", [2]), ("early", [3, 4])]


def test_early_panes_follow_a_sequence_again_and_again():
    trigger = AfterWatermark(early=InOrder((AfterCount(1), AfterCount(2))))
    panes = shown(fixed(trigger, mode="discarding"), [1], [2], [3], [4], [5], [6])
    assert [values for _, values in panes] == [[1], [2, 3], [4], [5, 6]]


def test_an_end_that_has_come_stays_while_its_session_does():
    end = Until((AfterCount(9), AnyOf((AfterCount(2), AfterDelay(5)))))
    trigger = InOrder((end, AfterCount(3)))
    panes = shown(sessions(trigger, mode="discarding"), [1, 2], [2], [3], [4])
    assert panes == [("early", [1, 2]), ("early", [2, 3, 4])]


def test_what_comes_before_a_closed_session_opens_another():
    panes = shown(sessions(AfterDelay(5)), [20], {"clock": 6}, [24], [18, 21], {"clock": 12})
    assert panes == [("early", [20]), ("early", [18, 21])]


def test_a_pane_of_nothing_but_elements_behind_the_watermark_is_late_after_the_end():
    trigger = Repeat(AfterCount(3))
    steps = [{"watermark": 50}, [40], [41], {"watermark": 100}, [42]]
    assert shown(fixed(trigger, stamp="earliest"), *steps) == [("late", [40, 41, 42])]
    assert shown(fixed(trigger, stamp="end"), *steps) == [("on_time", [40, 41, 42])]


once = st.one_of(st.builds(AfterCount, st.integers(1, 4)), st.builds(AfterDelay, st.integers(0, 5)))
inner = st.one_of(
    once,
    st.just(Never()),
    st.tuples(once, once).map(AnyOf),
    st.tuples(once, once).map(AllOf),
    st.tuples(once, once).map(InOrder),
)
steps = st.lists(
    st.one_of(
        st.lists(st.integers(0, 30), min_size=1, max_size=3),
        st.integers(0, 45).map(lambda time: {"watermark": time}),
        st.integers(0, 45).map(lambda time: {"clock": time}),
    ),
    max_size=20,
)


@given(st.sampled_from([FixedWindows(10), SessionWindows(4)]), inner, inner, steps)
def test_watermark_with_early_and_late_is_a_sequence_of_simpler_triggers(
    windows, early, late, script
):
    script = ascending(script)
    whole = AfterWatermark(early, late)
    parts = InOrder((Until((Repeat(early), AfterWatermark())), Repeat(late)))
    one, other = (
        Windowing(windows=windows, trigger=trigger, lateness=20) for trigger in (whole, parts)
    )
    assert shown(one, *script) == shown(other, *script)


def ascending(script):
    latest = {"watermark": -1, "clock": 0}
    made = []
    for step in script:
        if isinstance(step, dict):
            ((name, time),) = step.items()
            latest[name] = max(latest[name], time)
            made.append({name: latest[name]})
        else:
            made.append(step)
    return made
