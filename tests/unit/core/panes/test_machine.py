"""What must hold for any elements, order, batching, trigger and crash."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.aggregates.collect import Collect
from penstock.core.panes.machine import KeyState, PaneMachine, Windowing
from penstock.core.panes.packing import pack, unpack
from penstock.core.panes.times import END, At
from penstock.core.panes.triggers import (
    DEFAULT,
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
from penstock.core.panes.windows import (
    CountWindows,
    FixedWindows,
    GlobalWindow,
    SessionWindows,
    SlidingWindows,
    joined,
)

once = st.one_of(
    st.builds(AfterCount, st.integers(1, 4)),
    st.builds(AfterDelay, st.integers(0, 5)),
    st.just(AfterWatermark()),
    st.just(Never()),
)
nested = st.recursive(
    once,
    lambda inner: st.one_of(
        st.builds(Repeat, inner),
        st.builds(AfterWatermark, st.none() | inner, st.none() | inner),
        st.tuples(inner, inner).map(AnyOf),
        st.tuples(inner, inner).map(AllOf),
        st.tuples(inner, inner).map(InOrder),
        st.tuples(inner, inner).map(Until),
    ),
    max_leaves=5,
)
# A repeated trigger never finishes, so no window closes before it expires.
lasting = st.one_of(st.just(DEFAULT), nested.map(Repeat))
kinds = st.sampled_from(
    [
        FixedWindows(10),
        FixedWindows(7, offset=3),
        SlidingWindows(10, 4),
        SessionWindows(5),
        GlobalWindow(),
        CountWindows(3),
    ]
)
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("in"),
            st.lists(st.tuples(st.integers(0, 40), st.integers(-3, 3)), max_size=4),
        ),
        st.tuples(st.just("watermark"), st.integers(0, 45)),
        st.tuples(st.just("clock"), st.integers(0, 45)),
    ),
    max_size=25,
)


apart = st.sampled_from([FixedWindows(10), SlidingWindows(10, 4), GlobalWindow()])
"""Windows that do not depend on each other, nor on what was dropped."""


def windowings(windows, trigger, **chosen):
    choices: dict[str, list[Any]] = {
        "mode": ["discarding", "accumulating", "retracting"],
        "stamp": ["end", "earliest", "latest"],
        "final_pane": ["if_new", "always"],
        "on_time_pane": ["always", "if_new"],
        "lateness": [0, 3, 1000],
    }
    rest = {name: st.sampled_from(values) for name, values in choices.items()}
    rest |= {name: st.just(value) for name, value in chosen.items()}
    return st.builds(Windowing, windows=windows, trigger=trigger, **rest)


def play(windowing, script, *, crash_at=frozenset(), lazy=False):
    """Run a script to the end of input; return panes and late elements."""
    machine, key, at = PaneMachine(windowing, Collect()), KeyState(), At()
    panes, late = [], []
    for number, (kind, value) in enumerate([*script, ("watermark", END)]):
        wakes = machine.wakes(key)
        if kind == "in":
            outcome = machine.add(key, value, at)
        else:
            at = at._replace(**{kind: max(value, getattr(at, kind))})
            if lazy and at.watermark < wakes.watermark and at.clock < wakes.clock:
                continue
            outcome = machine.advance(key, at)
        panes += outcome.panes
        late += outcome.late
        if number in crash_at:
            key = unpack(pack(key))
    assert not [state for state in key.windows.values() if not state.closed]
    return panes, late


def elements_of(script):
    return [each for kind, value in script if kind == "in" for each in value]


def batch_answer(kind, elements):
    """What a program that sees all elements at once would say."""
    answer = defaultdict(list)
    if isinstance(kind, SessionWindows):
        for group in joined([kind.of(time)[0] for time, _ in elements]):
            whole = (group[0][0], max(end for _, end in group))
            for time, value in elements:
                if whole[0] <= time < whole[1]:
                    answer[whole].append(value)
    elif isinstance(kind, CountWindows):
        for ordinal, (_, value) in enumerate(elements):
            answer[kind.of_ordinal(ordinal)].append(value)
    else:
        for time, value in elements:
            for window in kind.of(time):
                answer[window].append(value)
    return {window: sorted(values) for window, values in answer.items()}


def table_of(panes):
    """Apply panes with what they withdraw, as a table sink does."""
    table = {}
    for pane in panes:
        for window, value in pane.withdraws:
            assert table.pop(window) == value
        assert pane.window not in table
        table[pane.window] = pane.value
    return table


@given(windowings(kinds, lasting, mode="accumulating"), st.sampled_from([1000, END - 1]), steps)
def test_the_last_panes_are_the_batch_answer(windowing, lateness, script):
    windowing = replace(windowing, lateness=lateness)
    panes, late = play(windowing, script)
    assert late == []
    finals = {pane.window: pane.value for pane in panes}
    answer = batch_answer(windowing.windows, elements_of(script))
    assert {window: finals.get(window) for window in answer} == answer


@given(windowings(apart, lasting, mode="accumulating"), steps)
def test_the_last_panes_are_the_batch_answer_over_what_was_not_late(windowing, script):
    panes, late = play(windowing, script)
    finals = {pane.window: Counter(pane.value) for pane in panes}
    for window, values in batch_answer(windowing.windows, elements_of(script)).items():
        gone = Counter(each.value for each in late if each.window == window)
        assert finals.get(window, Counter()) == Counter(values) - gone


@given(windowings(kinds, nested | lasting, mode="retracting"), steps)
def test_withdrawals_always_name_what_was_given(windowing, script):
    panes, _ = play(windowing, script)
    table_of(panes)


@given(windowings(kinds, lasting, mode="retracting", lateness=1000), steps)
def test_panes_with_their_withdrawals_give_the_batch_table(windowing, script):
    panes, _ = play(windowing, script)
    table = {window: value for window, value in table_of(panes).items() if value}
    assert table == batch_answer(windowing.windows, elements_of(script))


@given(windowings(kinds, lasting, mode="discarding", lateness=1000), steps)
def test_discarded_panes_add_up_to_the_batch_answer(windowing, script):
    panes, _ = play(windowing, script)
    shown = Counter(value for pane in panes for value in pane.value)
    answer = batch_answer(windowing.windows, elements_of(script))
    assert shown == Counter(value for values in answer.values() for value in values)


@given(windowings(kinds, nested | lasting), steps)
def test_modes_differ_in_values_only(windowing, script):
    by_mode = {}
    for mode in ("discarding", "accumulating", "retracting"):
        by_mode[mode], _ = play(replace(windowing, mode=mode), script)
    plain = [
        [replace(pane, value=None, withdraws=()) for pane in made] for made in by_mode.values()
    ]
    assert plain[0] == plain[1] == plain[2]
    accumulated = [pane.value for pane in by_mode["accumulating"]]
    assert accumulated == [pane.value for pane in by_mode["retracting"]]
    if not isinstance(windowing.windows, SessionWindows):
        grown = defaultdict(list)
        for pane, whole in zip(by_mode["discarding"], accumulated, strict=True):
            grown[pane.window] += pane.value
            assert sorted(grown[pane.window]) == whole


@given(windowings(kinds, nested | lasting), steps, st.data())
def test_a_crash_at_any_step_changes_nothing(windowing, script, data):
    crashes = data.draw(st.sets(st.integers(0, len(script))))
    assert play(windowing, script, crash_at=crashes) == play(windowing, script)


@given(windowings(kinds, nested | lasting), steps)
def test_nothing_happens_before_the_machine_wakes(windowing, script):
    assert play(windowing, script, lazy=True) == play(windowing, script)


@given(windowings(kinds, lasting, mode="retracting", lateness=1000), steps, st.data())
def test_order_and_bundling_leave_no_trace_in_the_table(windowing, script, data):
    if isinstance(windowing.windows, CountWindows):
        return  # they are about the order of arrival
    panes, _ = play(windowing, script)
    again, _ = play(windowing, rebundled(script, data))
    assert table_with_values(again) == table_with_values(panes)


@given(
    windowings(kinds, st.sampled_from([AfterWatermark(), DEFAULT])),
    st.lists(st.tuples(st.integers(0, 40), st.integers(-3, 3)), max_size=12),
    st.data(),
)
def test_order_and_bundling_before_the_end_leave_no_trace_in_the_panes(windowing, elements, data):
    if isinstance(windowing.windows, CountWindows):
        return  # they are about the order of arrival
    script = [("in", elements), ("watermark", 100)]
    assert play(windowing, rebundled(script, data)) == play(windowing, script)


def rebundled(script, data):
    """Shuffle and cut anew the elements that come in one moment."""
    made, waiting = [], []
    for kind, value in [*script, ("clock", 0)]:
        if kind == "in":
            waiting += value
            continue
        order = data.draw(st.permutations(waiting))
        cuts = sorted(data.draw(st.sets(st.integers(0, len(order)))) | {0, len(order)})
        made += [("in", order[start:end]) for start, end in pairwise(cuts)]
        made.append((kind, value))
        waiting = []
    return made


def table_with_values(panes):
    return {window: value for window, value in table_of(panes).items() if value}


@given(windowings(kinds, nested | lasting), steps)
def test_panes_are_numbered_and_timed_in_order(windowing, script):
    panes, _ = play(windowing, script)
    order = ["early", "on_time", "late"]
    followed = defaultdict(list)
    for pane in panes:
        if pane.index == 0:
            followed[pane.window] = []
        followed[pane.window].append(pane)
    for sequence in followed.values():
        assert [pane.index for pane in sequence] == list(range(len(sequence)))
        ranks = [order.index(pane.timing) for pane in sequence]
        assert ranks == sorted(ranks)
        assert [pane.timing for pane in sequence].count("on_time") <= 1
        settled = [pane.on_time_index for pane in sequence if pane.timing != "early"]
        assert settled == list(range(len(settled)))
        assert not any(pane.last for pane in sequence[:-1])


@given(windowings(apart, nested | lasting), steps)
def test_the_stamp_of_a_pane_lies_in_its_window(windowing, script):
    for pane in play(windowing, script)[0]:
        start, end = pane.window
        assert start <= pane.stamp < end
        if windowing.stamp == "end":
            assert pane.stamp == end - 1


@given(windowings(kinds, nested | lasting, mode="discarding"), steps)
def test_every_element_is_in_one_pane_or_is_late(windowing, script):
    panes, late = play(windowing, script)
    single = isinstance(windowing.windows, SessionWindows | CountWindows)
    pairs = sum(1 if single else len(windowing.windows.of(time)) for time, _ in elements_of(script))
    assert pairs == sum(len(pane.value) for pane in panes) + len(late)


def test_an_idle_machine_says_when_to_wake_it():
    machine = PaneMachine(
        Windowing(windows=FixedWindows(10), trigger=Repeat(AfterDelay(5)), lateness=7), Collect()
    )
    key = KeyState()
    machine.add(key, [(3, 1)], At(0, 100))
    assert machine.wakes(key) == At(10, 106)
    machine.advance(key, At(10, 100))
    assert machine.wakes(key) == At(17, 106)
    assert machine.wakes(KeyState()) == At(END, END)


@pytest.mark.parametrize("mode", ["accumulating", "retracting"])
def test_merged_sessions_take_back_what_they_replace(mode):
    windowing = Windowing(
        windows=SessionWindows(10), trigger=Repeat(AfterCount(1)), mode=mode, lateness=100
    )
    panes, _ = play(windowing, [("in", [(0, 1)]), ("in", [(15, 2)]), ("in", [(8, 3)])])
    assert panes[2].window == (0, 25)
    assert panes[2].value == [1, 2, 3]
    expected = (((0, 10), [1]), ((15, 25), [2])) if mode == "retracting" else ()
    assert panes[2].withdraws == expected


def test_processing_is_the_same_for_equal_definitions():
    windowing = Windowing(windows=FixedWindows(10))
    assert windowing == replace(windowing)
    assert hash(windowing) == hash(replace(windowing))
