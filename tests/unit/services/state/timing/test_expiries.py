"""Times to live of state on a disk: the same things expire as in memory, and no key is held for it."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.graph.state import CallScope, StateSpec
from penstock.core.instants import micros
from penstock.services.state.shelf import open_shelf
from penstock.services.state.states import States
from penstock.testing.clock import ManualClock


class Subject(States):
    """States with one handle each, as a task has them."""

    def __init__(self, shelf=None, *, specs, clock):
        super().__init__(specs, changelog="changelog", clock=clock or ManualClock(), shelf=shelf)
        self.here = CallScope()
        self.given = self.handles(self.here)

    def at(self, key):
        self.here.key = key
        self.here.undo.clear()
        return self

    def __getitem__(self, name):
        return self.given[name]

    def commit(self, log):
        log += self.changes()
        self.settle()


def opened(path):
    return open_shelf(path, identity="one")


FRESH = StateSpec("fresh", int, ttl=timedelta(minutes=16))
LIVES = st.lists(
    st.tuples(st.sampled_from(["set", "delete", "commit", "reopen", "wait"]), st.integers(0, 5)),
    max_size=40,
)


@settings(max_examples=settings().max_examples // 3)
@given(steps=LIVES)
def test_on_disk_and_in_memory_the_same_things_expire(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("shelf") / "0"
    clock, log, expected = ManualClock(), [], []
    held = Subject(specs=(FRESH,), clock=clock)
    subject = Subject(opened(path), specs=(FRESH,), clock=clock)
    for action, number in steps:
        if action == "wait":
            clock.advance(timedelta(minutes=number))
        elif action in {"set", "delete"}:
            for each in (held, subject):
                state = each.at(b"%d" % number)["fresh"]
                state.set(number) if action == "set" else state.delete()
        else:
            for each, changes in ((held, expected), (subject, log)):
                each.sweep(micros(clock()))
                each.snapshot({"changelog": 1})
                each.commit(changes)
        if action == "reopen":
            subject.shelf.close()
            subject = Subject(opened(path), specs=(FRESH,), clock=clock)
            subject.resume()
        for key in (b"%d" % each for each in range(6)):
            assert subject.at(key)["fresh"].get() == held.at(key)["fresh"].get()
    clock.advance(timedelta(hours=1))
    for each, changes in ((held, expected), (subject, log)):
        each.commit(changes)
        each.sweep(micros(clock()))
        each.commit(changes)
    assert {key: value for key, value in dict(log).items() if value} == {}
    assert dict(log).keys() == dict(expected).keys()
    assert list(subject.shelf.index(b"")) == []
    assert subject.expires_at() is None
    subject.shelf.close()


def test_expiries_on_a_disk_take_no_memory_for_each_key(tmp_path):
    path, clock = tmp_path / "0", ManualClock()
    subject = Subject(opened(path), specs=(FRESH,), clock=clock)
    for number in range(3000):
        subject.at(b"%d" % number)["fresh"].set(number)
    for _ in range(1000):
        subject.at(b"0")["fresh"].set(0)
        subject.snapshot({"changelog": 1})
        subject.commit([])
        clock.advance(timedelta(seconds=1))
    entries = list(subject.shelf.index(b""))
    assert len(entries) < 3000 + 30
    subject.shelf.close()
    subject = Subject(opened(path), specs=(FRESH,), clock=clock)
    subject.resume()
    assert subject.expires_at() is not None
    assert len(subject.cells[0].values._cache) == 0
    assert len(subject) < 3500
    clock.advance(timedelta(minutes=10))
    assert subject.sweep(micros(clock()))
    assert len(subject.cells[0].changed) == 2999
    subject.shelf.close()
