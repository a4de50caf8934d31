"""A standby copies the states of tasks that others run, from a changelog in memory."""

import threading
from datetime import UTC, datetime
from time import monotonic, time

import pytest

from penstock import App, State, record
from penstock.errors import TransientError
from penstock.services.state.notes import POSITIONS_KEY
from penstock.services.state.positions import Input, dump_positions
from penstock.services.state.shelf import LONGEST_AGE_SECONDS, open_copy, open_shelf
from penstock.services.step.factory import make_copy
from penstock.services.task import standby
from penstock.services.task.standby import Copied, Standby
from penstock.testing.memorylog import MemoryLog
from penstock.testing.servicelog import MemoryServiceLog

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = 30.0


@record(key="word")
class Word:
    word: str


app = App("demo")
words = app.stream("words", Word, partitions=2)


@app.service(reads=words)
def count(word: Word, total: State[int]) -> None:
    total.set(total.get(0) + 1)


CHANGELOG = app.graph.changelog(count).name


class Bench:
    """A standby over copies in a directory; what it reads is waited for, record by record."""

    def __init__(self, path):
        self.path = path
        self.log = MemoryLog(app.graph.topics(), clock=lambda: NOW_AT)
        self.taken = threading.Semaphore(0)
        self.below = MemoryServiceLog(app.graph, count, self.log)
        self.standby = Standby(self.below, CHANGELOG, open_copy=self.open)

    def open(self, number):
        shelf = open_copy(self.path / f"{number}", identity="one")
        if shelf is None:
            return None
        kept = make_copy(app.graph, count, clock=lambda: NOW_AT, shelf=shelf)
        told, restored = self.taken, kept.restored

        def then(positions):
            restored(positions)
            told.release()

        kept.restored = then
        return Copied(shelf, kept, ("words",))

    def write(self, number, key, value):
        self.log.append(CHANGELOG, key=b"total\x00" + key, value=value, partition=number)

    def commit(self, number, values, *, offset):
        """Write what a commit writes: values, and how far the input was read."""
        for key, value in values.items():
            self.write(number, key, value)
        self.end(number, offset=offset)

    def end(self, number, *, offset):
        note = dump_positions(
            {("words", number): offset},
            {"words": Input(id="one", partitions=2)},
            owner="demo/count",
            delivery="exactly_once",
        )
        self.log.append(CHANGELOG, key=POSITIONS_KEY, value=note, partition=number)

    def shown(self, number):
        """Return what the copy of a task shows: its positions, and its values."""
        reading = self.standby.reading(number)
        if reading is None:
            return None
        with reading.cut() as cut:
            return cut.positions[("words", number)], dict(cut.scan("total"))

    def wait_for(self, records):
        for _ in range(records):
            assert self.taken.acquire(timeout=PATIENCE)

    def has(self, number):
        shelf = open_shelf(self.path / f"{number}", identity="one")
        found = {key.partition(b"\x00")[2]: value for key, value in shelf.scan(b"total\x00")}
        positions = dict(shelf.positions)
        shelf.close()
        return found, positions


def until(condition):
    deadline = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < deadline
        threading.Event().wait(0.002)


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    yield bench
    bench.standby.close()


def test_it_follows_the_tasks_it_is_told_to_and_no_others(bench):
    bench.write(0, b"a", b"1")
    bench.write(1, b"b", b"2")
    bench.standby.keep([1])
    bench.wait_for(1)
    bench.commit(1, {b"b": b"3"}, offset=1)
    bench.commit(1, {b"c": b"4"}, offset=2)
    until(lambda: bench.standby.records == 5)
    assert bench.standby.copies == 1
    bench.standby.close()
    assert bench.has(1) == ({b"b": b"3", b"c": b"4"}, {CHANGELOG: 5})
    assert bench.has(0) == ({}, {})


def test_a_copy_that_is_given_up_can_be_opened_at_once(bench):
    bench.write(0, b"a", b"1")
    bench.write(1, b"b", b"2")
    bench.standby.keep([0, 1])
    bench.wait_for(2)
    bench.standby.give(0)
    assert bench.has(0) == ({b"a": b"1"}, {CHANGELOG: 1})
    assert bench.standby.copies == 1


def test_a_copy_goes_on_from_where_it_was(bench, tmp_path):
    bench.write(0, b"a", b"1")
    bench.standby.keep([0])
    bench.wait_for(1)
    bench.standby.keep([])
    bench.standby.give(0)
    again = Standby(bench.below, CHANGELOG, open_copy=bench.open)
    bench.write(0, b"a", b"2")
    again.keep([0])
    bench.wait_for(1)
    again.close()
    assert again.records == 1
    assert bench.has(0) == ({b"a": b"2"}, {CHANGELOG: 2})


def test_a_copy_that_may_lack_deletions_is_made_anew(bench):
    shelf = open_shelf(bench.path / "0", identity="one")
    shelf.confirm(time() - 2 * LONGEST_AGE_SECONDS)
    shelf.write([(b"total\x00gone", b"9")], positions={CHANGELOG: 0})
    shelf.close()
    bench.write(0, b"a", b"1")
    bench.standby.keep([0])
    bench.wait_for(1)
    bench.standby.close()
    assert bench.has(0) == ({b"a": b"1"}, {CHANGELOG: 1})


def test_a_copy_of_another_type_is_refused_and_the_others_are_kept(bench):
    bench.write(0, b"a", b'"a text"')
    bench.write(1, b"b", b"2")
    bench.standby.keep([0, 1])
    bench.wait_for(1)
    bench.commit(1, {b"c": b"3"}, offset=1)
    until(lambda: bench.shown(1))
    bench.standby.close()
    assert bench.has(0)[0] == {}
    assert bench.has(1)[0] == {b"b": b"2", b"c": b"3"}


def test_a_copy_shows_whole_commits_with_the_positions_they_stand_for(bench):
    bench.commit(0, {b"a": b"1", b"b": b"1"}, offset=2)
    bench.standby.keep([0, 1])
    until(lambda: bench.shown(0) == (2, {b"a": 1, b"b": 1}))
    bench.write(0, b"a", b"2")  # one of the two that a commit changes
    bench.commit(1, {b"c": b"1"}, offset=1)
    until(lambda: bench.shown(1) == (1, {b"c": 1}))
    assert bench.shown(0) == (2, {b"a": 1, b"b": 1})
    bench.write(0, b"b", b"2")
    bench.end(0, offset=4)
    until(lambda: bench.shown(0) == (4, {b"a": 2, b"b": 2}))


def test_a_cut_of_a_copy_stays_what_it_was_and_ends_with_the_copy(bench):
    bench.commit(0, {b"a": b"1"}, offset=1)
    bench.standby.keep([0])
    until(lambda: bench.shown(0))
    reading = bench.standby.reading(0)
    cut = reading.cut()
    bench.commit(0, {b"a": b"2"}, offset=2)
    until(lambda: bench.shown(0) == (2, {b"a": 2}))
    assert cut.get("total", b"a") == 1
    bench.standby.give(0)
    assert bench.standby.reading(0) is None
    with pytest.raises(TransientError, match="does not run here"):
        cut.get("total", b"a")
    with pytest.raises(TransientError, match="does not run here"):
        reading.cut()


def test_a_commit_that_is_too_large_to_wait_for_is_not_shown_by_halves(bench, monkeypatch):
    monkeypatch.setattr(standby, "MOST_PENDING", 3)
    bench.commit(0, {b"a": b"1"}, offset=1)
    bench.standby.keep([0])
    until(lambda: bench.shown(0))
    for number in range(6):
        bench.write(0, b"k%d" % number, b"1")
    until(lambda: bench.standby.records >= 2 + 4)
    assert bench.standby.reading(0) is None
    bench.end(0, offset=7)
    until(lambda: bench.shown(0) is not None)
    assert bench.shown(0)[0] == 7
    assert len(bench.shown(0)[1]) == 7


def test_a_changelog_that_says_no_positions_is_followed_and_not_shown(bench):
    bench.write(0, b"a", b"1")
    bench.standby.keep([0])
    bench.wait_for(1)
    assert bench.standby.reading(0) is None


def test_a_directory_that_another_has_open_is_left_alone(bench):
    mine = open_shelf(bench.path / "0", identity="one")
    bench.write(0, b"a", b"1")
    bench.write(1, b"b", b"2")
    bench.standby.keep([0, 1])
    bench.wait_for(1)
    assert bench.standby.copies == 1
    assert dict(mine.scan(b"total\x00")) == {}
    mine.close()
