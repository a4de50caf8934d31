"""Timers on a disk: the same go off in the same order as in memory, whatever is in the window."""

import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.graph.state import CallScope
from penstock.core.instants import micros
from penstock.services.state.shelf import open_shelf
from penstock.services.state.states import States
from penstock.services.state.timing import shelved
from penstock.services.state.timing.eventtime import TaskEventTime
from penstock.services.state.timing.queue import TimerQueue

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = [b"", b"a", b"a\x00", b"a\x00b", b"\xff", b"b"]


class Subject:
    """Timers with the states they are committed with."""

    def __init__(self, shelf=None):
        self.queue = TimerQueue(TaskEventTime(()), clock=lambda: NOW_AT, shelf=shelf)
        self.states = States(
            [], changelog="changelog", clock=lambda: NOW_AT, timers=self.queue, shelf=shelf
        )
        self.here = CallScope()

    def put(self, key, name, seconds):
        self.here.key = key
        due_at = NOW_AT + timedelta(seconds=seconds)
        self.queue.put(self.here, "processing", name, due_at, [seconds])

    def drop(self, key, name):
        self.here.key = key
        self.queue.drop(self.here, "processing", name)

    def pop(self, seconds):
        return self.queue.pop("processing", micros(NOW_AT + timedelta(seconds=seconds)))

    def commit(self, log=None, *, position=None):
        if position is not None:
            self.states.snapshot({"changelog": position})
        found = [*self.states.changes()]
        if log is not None:
            log += found
        self.here.undo.clear()
        self.states.settle()


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(shelved, "WINDOW", 3)
    monkeypatch.setattr(shelved, "CACHED_TIMERS", 4)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "drop", "pop", "undo", "commit", "restart", "crash"]),
        st.sampled_from(KEYS),
        st.sampled_from(["x", "y"]),
        st.integers(-5, 30),
    ),
    max_size=60,
)


@settings(max_examples=settings().max_examples // 5)
@given(actions=ACTIONS)
def test_on_disk_and_in_memory_the_same_timers_go_off(tmp_path_factory, actions):
    path = tmp_path_factory.mktemp("timers") / "0"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelved, "WINDOW", 3)
        patch.setattr(shelved, "CACHED_TIMERS", 4)
        compare(path, actions)


class OnDisk(Subject):
    """A subject that a restart takes from its directory, and from what the changelog has more."""

    def __init__(self, path, log):
        self.shelf = open_shelf(path, identity="one")
        self.path, self.log = path, log
        super().__init__(self.shelf)

    def restarted(self, *, lost):
        self.shelf.close()
        found = OnDisk(self.path, self.log)
        if lost:
            found.shelf.clear()
        for each in self.log[found.states.resume().get("changelog", 0) :]:
            found.states.apply(*each)
        found.states.restored({"changelog": len(self.log)})
        return found


def act(subject, action, key, name, seconds):
    if action == "undo":
        subject.here.take_back()
    subject.here.undo.clear()
    if action == "put":
        subject.put(key, name, seconds)
    elif action == "drop":
        subject.drop(key, name)
    return subject.pop(seconds) if action == "pop" else None


def compare(path, actions):
    held, subject = Subject(), OnDisk(path, [])
    for number, (action, *given_) in enumerate(actions):
        assert act(held, action, *given_) == act(subject, action, *given_)
        if action in ("commit", "restart", "crash"):
            held.commit()
            subject.commit(subject.log, position=len(subject.log) if number % 2 else None)
        if action in ("restart", "crash"):
            subject = subject.restarted(lost=action == "crash" and number % 3 == 0)
        assert len(held.queue) == len(subject.queue)
        assert held.queue.first("processing") == subject.queue.first("processing")
    while (due := held.pop(100)) is not None:
        assert subject.pop(100) == due
    assert subject.pop(100) is None
    subject.shelf.close()


@given(
    entries=st.lists(
        st.tuples(
            st.integers(micros(datetime(1, 1, 2, tzinfo=UTC)), 2**60),
            st.one_of(st.sampled_from(KEYS), st.binary(max_size=4)),
            st.text(max_size=3).filter(lambda name: "\x00" not in name),
        ),
        max_size=20,
    )
)
def test_entries_stand_on_the_disk_in_the_order_in_which_timers_go_off(entries):
    packed = sorted(shelved._packed(each) for each in entries)
    assert [shelved._unpacked(each) for each in packed] == sorted(entries)


def test_timers_that_were_given_to_be_taken_later_are_not_given_twice(tmp_path, small):
    shelf = open_shelf(tmp_path / "0", identity="one")
    subject = Subject(shelf)
    for number in range(20):
        subject.put(b"%02d" % number, "x", number)
    subject.commit()
    given_ = []
    while (
        found := subject.queue.point("processing", micros(NOW_AT + timedelta(seconds=50)))
    ) is not None:
        given_.append(found)
    assert [key for _, key, _ in given_] == [b"%02d" % number for number in range(20)]
    at, key, name = given_[7]
    subject.queue.point_again("processing", key, name, at)
    assert subject.pop(50).key == b"07"
    assert subject.queue.take("processing", b"03", "x", given_[3][0]).key == b"03"
    assert len(subject.queue) == 18
    shelf.close()


def test_timers_on_a_disk_take_no_memory_for_each_key(tmp_path, monkeypatch):
    monkeypatch.setattr(shelved, "WINDOW", 500)
    monkeypatch.setattr(shelved, "CACHED_TIMERS", 1_000)
    shelf = open_shelf(tmp_path / "0", identity="one")
    subject = Subject(shelf)
    subject.put(b"first", "x", 0)
    subject.commit()
    assert subject.pop(1).key == b"first"

    def grow(numbers):
        for number in numbers:
            subject.put(b"device-%08d" % number, "silent", number % 7919)
            if number % 1_000 == 0:
                subject.commit()
        subject.commit()

    tracemalloc.start()
    try:
        grow(range(8_000))
        before, _ = tracemalloc.get_traced_memory()
        grow(range(8_000, 16_000))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(subject.queue) == 16_000
    assert after - before < 600_000  # in memory, 8,000 of them take 3.2 MB
    last = -1
    for _ in range(2_000):
        due = subject.pop(10_000)
        assert due.at >= last
        last = due.at
    shelf.close()
