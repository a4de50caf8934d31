"""A standby copies the states of tasks that others run, from a changelog in memory."""

import threading
from datetime import UTC, datetime
from time import time

import pytest

from penstock import App, State, record
from penstock.services.state.shelf import LONGEST_AGE_SECONDS, open_copy, open_shelf
from penstock.services.step.factory import make_copy
from penstock.services.task.standby import Standby
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
        return shelf, kept

    def write(self, number, key, value):
        self.log.append(CHANGELOG, key=b"total\x00" + key, value=value, partition=number)

    def wait_for(self, records):
        for _ in range(records):
            assert self.taken.acquire(timeout=PATIENCE)

    def has(self, number):
        shelf = open_shelf(self.path / f"{number}", identity="one")
        found = {key.partition(b"\x00")[2]: value for key, value in shelf.scan(b"total\x00")}
        positions = dict(shelf.positions)
        shelf.close()
        return found, positions


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
    bench.write(1, b"b", b"3")
    bench.write(1, b"c", b"4")
    bench.wait_for(2)
    assert (bench.standby.copies, bench.standby.records) == (1, 3)
    bench.standby.close()
    assert bench.has(1) == ({b"b": b"3", b"c": b"4"}, {CHANGELOG: 3})
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
    bench.write(1, b"c", b"3")
    bench.wait_for(1)
    bench.standby.close()
    assert bench.has(0)[0] == {}
    assert bench.has(1)[0] == {b"b": b"2", b"c": b"3"}


def test_a_directory_that_another_has_open_is_left_alone(bench):
    mine = open_shelf(bench.path / "0", identity="one")
    bench.write(0, b"a", b"1")
    bench.write(1, b"b", b"2")
    bench.standby.keep([0, 1])
    bench.wait_for(1)
    assert bench.standby.copies == 1
    assert dict(mine.scan(b"total\x00")) == {}
    mine.close()
