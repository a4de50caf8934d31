import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.state import StateSpec
from penstock.errors import ConfigurationError
from penstock.services.statecodec import MARKER_KEY
from penstock.services.states import States


def states(**kinds):
    return States(
        [StateSpec(name, kind) for name, kind in kinds.items()], changelog="app.count.changelog"
    )


def value_of(subject, name):
    return subject.slot(name).state.get()


def test_a_changed_key_gives_one_changelog_record_however_often_it_changed():
    subject = states(total=int)
    for key, value in [(b"a", 1), (b"b", 1), (b"a", 2)]:
        subject.point(key)
        subject.slots[0].state.set(value)
    assert dict(subject.changes()) == {b"total\x00a": b"2", b"total\x00b": b"1"}
    subject.settle()
    assert list(subject.changes()) == []


def test_a_deleted_key_gives_a_tombstone():
    subject = states(total=int)
    subject.apply(b"total\x00a", b"5")
    subject.point(b"a")
    subject.slots[0].state.delete()
    assert list(subject.changes()) == [(b"total\x00a", None)]


def test_two_states_of_one_key_keep_apart():
    subject = states(total=int, last=str)
    subject.point(b"a")
    subject.slots[0].state.set(3)
    subject.slots[1].state.set("x")
    assert dict(subject.changes()) == {b"total\x00a": b"3", b"last\x00a": b'"x"'}


def test_taking_back_restores_what_was_there_before_the_call():
    subject = states(total=int, last=str)
    subject.apply(b"total\x00a", b"5")
    subject.point(b"a")
    subject.slots[0].state.set(6)
    subject.slots[1].state.set("new")
    subject.take_back(b"a")
    assert (value_of(subject, "total"), value_of(subject, "last")) == (5, None)
    assert dict(subject.changes()).get(b"total\x00a", b"5") == b"5"


def test_taking_back_a_deletion_brings_the_value_back():
    subject = states(total=int)
    subject.apply(b"total\x00a", b"5")
    subject.point(b"a")
    subject.slots[0].state.delete()
    subject.take_back(b"a")
    assert value_of(subject, "total") == 5


def test_verifying_refuses_what_the_type_does_not_allow():
    subject = states(total=int)
    subject.point(b"a")
    subject.slots[0].state.set("three")
    with pytest.raises(TypeError, match="a state of int was given str"):
        subject.verify(b"a")


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
        subject.point(key)
        if value is None:
            subject.slots[0].state.delete()
        else:
            subject.slots[0].state.set(value)
        if commits:
            log += subject.changes()
            subject.settle()
    log += subject.changes()
    rebuilt = states(total=int)
    for key, value in log:
        rebuilt.apply(key, value)
    assert rebuilt.slots[0].cells.values == subject.slots[0].cells.values
