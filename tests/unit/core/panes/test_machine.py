"""What must hold for any elements, order, batching, trigger and crash."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.panes.aggregates import Collect
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


def play(windowing, script, *, crash_at=frozenset()):
    """Run a script to the end of input; return panes and late elements."""
    machine, key, at = PaneMachine(windowing, Collect()), KeyState(), At()
    panes, late = [], []
    for number, (kind, value) in enumerate([*script, ("watermark", END)]):
        if kind == "in":
            outcome = machine.add(key, value, at)
        else:
            field = {"watermark": "watermark", "clock": "clock"}[kind]
            at = at._replace(**{field: max(value, getattr(at, field))})
            outcome = machine.advance(key, at)
        panes += outcome.panes
        late += outcome.late
        if number in crash_at:
            key = unpack(pack(key))
    assert not [state for state in key.windows.values() if not state.closed]
    return panes, late


def accepted(script, late):
    gone = Counter((element.time, element.value) for element in late)
    taken = []
    for element in (each for kind, value in script if kind == "in" for each in value):
        if gone[element]:
            gone[element] -= 1
        else:
            taken.append(element)
    return taken


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


@given(kinds, lasting, steps, st.booleans())
def test_the_last_panes_are_the_batch_answer(kind, trigger, script, endless):
    # Without lateness nothing can be re-grouped, so sessions are compared where none is late.
    windowing = Windowing(windows=kind, trigger=trigger, lateness=END - 1 if endless else 1000)
    panes, late = play(windowing, script)
    assert late == []
    finals = {pane.window: pane.value for pane in panes}
    answer = batch_answer(kind, accepted(script, late))
    assert {window: finals.get(window) for window in answer} == answer


@given(kinds, nested | lasting, steps, st.sampled_from([0, 3, 1000]))
def test_withdrawals_always_name_what_was_given(kind, trigger, script, lateness):
    windowing = Windowing(windows=kind, trigger=trigger, mode="retracting", lateness=lateness)
    panes, _ = play(windowing, script)
    table_of(panes)


@given(kinds, lasting, steps)
def test_panes_with_their_withdrawals_give_the_batch_table(kind, trigger, script):
    windowing = Windowing(windows=kind, trigger=trigger, mode="retracting", lateness=1000)
    panes, late = play(windowing, script)
    answer = batch_answer(kind, accepted(script, late))
    table = {window: value for window, value in table_of(panes).items() if value}
    assert table == answer


@given(kinds, lasting, steps)
def test_discarded_panes_add_up_to_the_batch_answer(kind, trigger, script):
    windowing = Windowing(windows=kind, trigger=trigger, mode="discarding", lateness=1000)
    panes, late = play(windowing, script)
    shown = Counter(value for pane in panes for value in pane.value)
    answer = batch_answer(kind, accepted(script, late))
    assert shown == Counter(value for values in answer.values() for value in values)


@given(kinds, nested | lasting, steps, st.sampled_from([0, 3, 1000]), st.data())
def test_a_crash_at_any_step_changes_nothing(kind, trigger, script, lateness, data):
    modes = st.sampled_from(["discarding", "accumulating", "retracting"])
    windowing = Windowing(
        windows=kind, trigger=trigger, mode=data.draw(modes), lateness=lateness, stamp="earliest"
    )
    crashes = data.draw(st.sets(st.integers(0, len(script))))
    assert play(windowing, script, crash_at=crashes) == play(windowing, script)


@given(kinds, nested | lasting, steps, st.sampled_from([0, 3, 1000]))
def test_panes_are_numbered_and_timed_in_order(kind, trigger, script, lateness):
    panes, _ = play(Windowing(windows=kind, trigger=trigger, lateness=lateness), script)
    order = ["early", "on_time", "late"]
    followed = defaultdict(list)
    for pane in panes:
        if pane.first:
            followed[pane.window] = []
        followed[pane.window].append(pane)
    for sequence in followed.values():
        assert [pane.index for pane in sequence] == list(range(len(sequence)))
        ranks = [order.index(pane.timing) for pane in sequence]
        assert ranks == sorted(ranks)
        assert [pane.timing for pane in sequence].count("on_time") <= 1
        settled = [pane.on_time_index for pane in sequence if pane.timing != "early"]
        assert settled == list(range(len(settled)))


@given(st.sampled_from([FixedWindows(10), SlidingWindows(10, 4), GlobalWindow()]), nested, steps)
def test_every_element_is_in_a_pane_or_late_or_in_a_closed_window(kind, trigger, script):
    windowing = Windowing(windows=kind, trigger=trigger, mode="discarding", lateness=3)
    panes, late = play(windowing, script)
    elements = [each for step, value in script if step == "in" for each in value]
    pairs = sum(len(kind.of(time)) for time, _ in elements)
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
