"""State on a disk: the same answers as in memory, and rebuilt whenever it is not to be trusted."""

import os
import threading
import time
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.graph.state import CallScope, StateSpec
from penstock.errors import ConfigurationError, TransientError
from penstock.services.state import shelf as shelf_module
from penstock.services.state import shelved
from penstock.services.state.shelf import claimed, open_copy, open_shelf
from penstock.services.state.states import States
from penstock.testing.clock import ManualClock

TOTAL = StateSpec("total", int)
SPECS = (
    TOTAL,
    StateSpec("names", list[str]),
    StateSpec("recent", int, "list"),
    StateSpec("pages", int, "map", str),
)


class Subject(States):
    """States with one handle each, as a task has them."""

    def __init__(self, shelf=None, *, specs=SPECS, clock=None):
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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "group" / "0"


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def opened(path, identity="one"):
    return open_shelf(path, identity=identity)


def test_what_was_committed_is_there_after_the_next_opening(path):
    shelf = opened(path)
    assert shelf.positions == {}
    subject = Subject(shelf).at(b"a")
    subject["total"].set(5)
    subject["recent"].extend([1, 2])
    subject["pages"].set("home", 1)
    subject.snapshot({"changelog": 7})
    subject.commit([])
    subject["total"].set(6)
    shelf.close()
    shelf = opened(path)
    again = Subject(shelf).at(b"a")
    assert again.resume() == {"changelog": 7}
    assert again["total"].get() == 5
    assert again["recent"].get() == [1, 2]
    assert dict(again["pages"].items()) == {"home": 1}
    shelf.close()


def test_restoring_goes_to_the_disk_and_sets_the_position(path):
    shelf = opened(path)
    subject = Subject(shelf)
    for number in range(12_000):
        subject.apply(b"total\x00%d" % number, b"%d" % number)
    subject.apply(b"total\x005", None)
    subject.restored({"changelog": 12_001})
    assert all(len(cells.values._cache) == 0 for cells in subject.cells)
    assert subject.at(b"11999")["total"].get() == 11_999
    assert subject.at(b"5")["total"].get() is None
    assert shelf.positions == {"changelog": 12_001}
    shelf.close()


def test_restoring_a_value_of_another_type_stops_loudly(path):
    shelf = opened(path)
    with pytest.raises(ConfigurationError, match="cannot be restored"):
        Subject(shelf).apply(b"total\x00a", b'"text"')
    shelf.close()


def test_timers_event_time_and_expiries_are_taken_from_the_disk(path):
    clock = ManualClock()
    spec = StateSpec("seen", int, ttl=timedelta(hours=1))
    shelf = opened(path)
    subject = Subject(shelf, specs=(spec,), clock=clock).at(b"a")
    subject["seen"].set(1)
    subject.snapshot({"changelog": 1})
    subject.commit([])
    shelf.close()
    clock.advance("61m")
    shelf = opened(path)
    again = Subject(shelf, specs=(spec,), clock=clock).at(b"a")
    again.resume()
    assert again.expires_at() is not None
    assert again["seen"].get() is None
    shelf.close()


def test_a_time_to_live_that_is_new_counts_from_the_restoring(path):
    clock = ManualClock()
    spec = StateSpec("seen", int, ttl=timedelta(hours=1))
    shelf = opened(path)
    subject = Subject(shelf, specs=(spec,), clock=clock).at(b"a")
    subject.apply(b"seen\x00a", b"1")
    subject.restored({"changelog": 1})
    clock.advance("59m")
    assert subject["seen"].get() == 1
    subject.cells[0].values._cache.clear()
    clock.advance("2m")
    assert subject["seen"].get() is None
    shelf.close()


def saved(path, identity="one"):
    shelf = opened(path, identity)
    subject = Subject(shelf).at(b"a")
    for number in range(2000):
        subject.at(b"%d" % number)["total"].set(number)
    subject.snapshot({"changelog": 3})
    subject.commit([])
    shelf._database.flush()
    shelf.close()


def test_a_copy_of_another_changelog_or_of_other_types_is_not_used(path):
    saved(path, "one")
    shelf = opened(path, "two")
    assert (shelf.positions, len(shelf)) == ({}, 0)
    shelf.close()


def test_a_copy_that_is_too_old_is_not_used(path, monkeypatch):
    saved(path)
    monkeypatch.setattr(shelf_module, "LONGEST_AGE_SECONDS", 0.0)
    shelf = opened(path)
    assert (shelf.positions, len(shelf)) == ({}, 0)
    shelf.close()


def test_a_copy_without_its_label_is_not_used(path):
    shelf = opened(path)
    shelf.write([(b"total\x00a", b"5")])
    shelf.close()
    shelf = opened(path)
    assert (shelf.positions, shelf.get(b"total\x00a")) == ({}, None)
    shelf.close()


def test_a_copy_that_cannot_be_opened_is_made_anew(path):
    saved(path)
    (path / "CURRENT").write_bytes(b"garbage")
    shelf = opened(path)
    assert (shelf.positions, len(shelf)) == ({}, 0)
    shelf.close()


def test_a_flipped_byte_is_noticed_and_the_copy_is_thrown_away(path):
    saved(path)
    (table,) = path.glob("*.sst")
    data = bytearray(table.read_bytes())
    data[len(data) // 3] ^= 0xFF
    table.write_bytes(data)
    shelf = opened(path)
    subject = Subject(shelf)
    with pytest.raises(TransientError, match="failed") as caught:
        [subject.at(b"%d" % number)["total"].get() for number in range(2000)]
    assert "orruption" in caught.value.detail
    with pytest.raises(TransientError):
        list(subject.changes())
    shelf.close()
    assert not path.exists()
    again = opened(path)
    assert again.positions == {}
    again.close()


def test_a_copy_in_use_is_left_to_its_owner(path):
    first = opened(path)
    second = open_shelf(path, identity="one", patience=timedelta())
    second.write([(b"total\x00a", b"5")], positions={"changelog": 1})
    assert second.path != first.path
    assert first.get(b"total\x00a") is None
    second.close()
    assert not second.path.exists()
    first.close()
    assert first.path.exists()


def test_copies_that_killed_workers_left_are_swept_up_and_those_in_use_are_not(path):
    left = path.with_name(f"{path.name}.0a1b2c3d")
    left.mkdir(parents=True)
    first = opened(path)
    assert not left.exists()
    private = open_shelf(path, identity="one", patience=timedelta())
    long_ago = time.time() - 2 * shelf_module.LONGEST_AGE_SECONDS
    os.utime(private.path, (long_ago, long_ago))
    first.close()
    opened(path).close()
    assert private.path.exists()
    private.close()
    assert sorted(each.name for each in path.parent.iterdir()) == ["0", "0.lock"]


def test_a_copy_is_claimed_from_whoever_only_follows_and_waited_for(path):
    copy = open_copy(path, identity="one")
    copy.write([(b"total\x00a", b"5")], positions={"changelog": 7})
    taken = []
    heir = threading.Thread(target=lambda: taken.append(opened(path)))
    heir.start()
    until(lambda: claimed(path))
    copy.close()
    heir.join(60)
    (shelf,) = taken
    assert (shelf.path, shelf.positions, shelf.private) == (path, {"changelog": 7}, False)
    assert not claimed(path)
    assert open_copy(path, identity="one") is None
    shelf.close()


def test_nothing_is_removed_under_whoever_has_it_open(path):
    """What looks broken from outside may be a worker that is just making it."""
    first = opened(path)
    first.write([(b"total\x00a", b"5")], positions={"changelog": 7})
    current = (path / "CURRENT").read_bytes()
    (path / "CURRENT").unlink()
    other = open_shelf(path, identity="one", patience=timedelta())
    assert other.private
    other.close()
    (path / "CURRENT").write_bytes(current)
    first.close()
    again = opened(path)
    assert again.get(b"total\x00a") == b"5"
    again.close()


def test_how_long_it_is_can_be_asked_after_it_was_closed(path):
    saved(path)
    shelf = opened(path)
    known = len(shelf)
    shelf.close()
    assert len(shelf) == known > 0


def test_only_a_copy_that_was_complete_is_as_young_as_its_last_write(path, monkeypatch):
    shelf = opened(path)
    shelf.write([], positions={"changelog": 0})
    monkeypatch.setattr(shelf_module, "LONGEST_AGE_SECONDS", 0.0)
    shelf.write([(b"total\x00a", b"5")], positions={"changelog": 7})
    assert shelf.stale
    monkeypatch.undo()
    assert not shelf.stale
    shelf.confirm(time.time() - 2 * shelf_module.LONGEST_AGE_SECONDS)
    shelf.write([], positions={"changelog": 8})
    shelf.close()
    again = opened(path)
    assert again.positions == {}
    again.close()


def test_a_file_in_the_way_of_the_directory_is_named(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("not ours")
    with pytest.raises(TransientError) as caught:
        opened(path)
    assert caught.value.message == (
        f"the state in {path} cannot be opened: a file is where its directory should be"
    )
    assert f"remove {path}" in caught.value.hint
    assert path.read_text() == "not ours"


def test_a_disk_that_cannot_be_written_is_told(path):
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    path.parent.write_bytes(b"a file where a directory should be")
    with pytest.raises(TransientError, match="cannot be opened"):
        opened(path)


KEYS = st.sampled_from([b"", b"a", b"ab", b"\x00\x00\x00\x01"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["total", "names", "recent", "pages", "fail", "commit", "crash", "reopen"]),
        KEYS,
        st.integers(0, 3),
    ),
    max_size=40,
)


def apply(subject, action, key, number):
    subject.at(key)
    if action == "total":
        subject["total"].set(number) if number else subject["total"].delete()
    elif action == "names":
        subject["names"].set([str(number)] * number)
    elif action == "recent":
        subject["recent"].append(number) if number else subject["recent"].clear()
    elif action == "pages":
        subject["pages"].set("xy"[: number % 3], number) if number else subject["pages"].clear()
    else:
        subject["pages"].set("z", 1)
        subject["total"].set(77)
        subject.here.take_back()


def contents(subject):
    return [
        (
            subject.at(key)["total"].get(),
            subject["names"].get(),
            subject["recent"].get(),
            dict(subject["pages"].items()),
        )
        for key in (b"", b"a", b"ab", b"\x00\x00\x00\x01")
    ]


@settings(max_examples=settings().max_examples // 2)
@given(steps=STEPS, cached=st.sampled_from([0, 1, 100]))
def test_on_disk_and_in_memory_the_answers_are_the_same_over_crashes(
    tmp_path_factory, steps, cached
):
    """A crash loses what is not committed; the disk may lag behind and is made whole again."""
    shelved.CACHED_VALUES = cached
    path = tmp_path_factory.mktemp("shelf") / "0"
    log, subject, model = [], Subject(opened(path)), Subject()
    for action, key, number in steps:
        if action == "commit":
            if number == 0:
                subject.snapshot({"changelog": len(log)})
            subject.commit(log)
            model.commit([])
        elif action in {"crash", "reopen"}:
            subject.shelf.close()
            subject = Subject(opened(path))
            start = subject.resume().get("changelog", 0)
            for entry in log[start:]:
                subject.apply(*entry)
            subject.restored({"changelog": len(log)})
            model = Subject()
            for entry in log:
                model.apply(*entry)
        else:
            apply(subject, action, key, number)
            apply(model, action, key, number)
        assert contents(subject) == contents(model)
    subject.shelf.close()
    shelved.CACHED_VALUES = 50_000
