import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.graph.state import CallScope, StateSpec
from penstock.errors import ConfigurationError
from penstock.services.state.codec import MARKER_KEY
from penstock.services.state.states import States
from penstock.testing.clock import ManualClock

CLOCK = ManualClock()


class Subject(States):
    """States with one handle each, as a task has them."""

    def __init__(self, *specs, clock=CLOCK):
        super().__init__(specs, changelog="app.count.changelog", clock=clock)
        self.here = CallScope()
        self.given = self.handles(self.here)

    def at(self, key):
        self.here.key = key
        self.here.undo.clear()
        return self

    def __getitem__(self, name):
        return self.given[name]


def states(**kinds):
    return Subject(*(StateSpec(name, kind) for name, kind in kinds.items()))


def test_a_changed_key_gives_one_changelog_record_however_often_it_changed():
    subject = states(total=int)
    for key, value in [(b"a", 1), (b"b", 1), (b"a", 2)]:
        subject.at(key)["total"].set(value)
    assert dict(subject.changes()) == {b"total\x00a": b"2", b"total\x00b": b"1"}
    subject.settle()
    assert list(subject.changes()) == []


def test_a_deleted_key_gives_a_tombstone():
    subject = states(total=int)
    subject.apply(b"total\x00a", b"5")
    subject.at(b"a")["total"].delete()
    assert list(subject.changes()) == [(b"total\x00a", None)]


def test_two_states_of_one_key_keep_apart():
    subject = states(total=int, last=str).at(b"a")
    subject["total"].set(3)
    subject["last"].set("x")
    assert dict(subject.changes()) == {b"total\x00a": b"3", b"last\x00a": b'"x"'}


def test_taking_back_restores_what_was_there_before_the_call():
    subject = states(total=int, last=str)
    subject.apply(b"total\x00a", b"5")
    subject.at(b"a")
    subject["total"].set(6)
    subject["total"].set(7)
    subject["last"].set("new")
    subject.here.take_back()
    assert (subject["total"].get(), subject["last"].get()) == (5, None)
    assert dict(subject.changes()).get(b"total\x00a", b"5") == b"5"


def test_taking_back_a_deletion_brings_the_value_back():
    subject = states(total=int)
    subject.apply(b"total\x00a", b"5")
    subject.at(b"a")["total"].delete()
    subject.here.take_back()
    assert subject["total"].get() == 5


def test_what_the_type_does_not_allow_is_refused_where_it_is_set():
    subject = states(total=int, names=list[str]).at(b"a")
    with pytest.raises(TypeError, match="a state of int was given str"):
        subject["total"].set("three")
    with pytest.raises(TypeError, match="the state 'names' holds"):
        subject["names"].set([1])
    assert len(subject) == 0


def test_a_value_changed_in_place_changes_nothing_before_it_is_set():
    subject = states(names=list[str]).at(b"a")
    given = ["a"]
    subject["names"].set(given)
    given.append("b")
    subject["names"].get([]).append("c")
    assert subject["names"].get() == ["a"]
    assert dict(subject.changes()) == {b"names\x00a": b'["a"]'}


def test_restoring_skips_markers_and_counts_records_of_states_that_are_gone():
    subject = states(total=int)
    subject.apply(MARKER_KEY, b"id")
    subject.apply(b"former\x00a", b"1")
    subject.apply(b"former\x00b", b"1")
    subject.apply(b"no zero byte", b"1")
    assert len(subject) == 0
    assert subject.unknown == {"former": 2, "no zero byte": 1}


def test_restoring_a_value_of_another_type_stops_loudly():
    with pytest.raises(ConfigurationError, match="cannot be restored"):
        states(total=int).apply(b"total\x00a", b'"text"')


@given(
    st.lists(
        st.tuples(st.binary(max_size=3), st.none() | st.integers(), st.booleans()), max_size=50
    )
)
def test_a_state_rebuilt_from_its_changelog_equals_the_state(steps):
    subject, log = states(total=int), []
    for key, value, commits in steps:
        subject.at(key)
        if value is None:
            subject["total"].delete()
        else:
            subject["total"].set(value)
        if commits:
            log += subject.changes()
            subject.settle()
    log += subject.changes()
    rebuilt = states(total=int)
    for key, value in log:
        rebuilt.apply(key, value)
    assert rebuilt.cells[0].values == subject.cells[0].values
