"""A task is restored from its logs: its changelog, and the topics of tables that it reads."""

import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from penstock import App, State, record
from penstock.core.graph.state import StateSpec
from penstock.errors import ConfigurationError
from penstock.services.state.shelf import open_shelf
from penstock.services.task.restore import Restore
from penstock.services.task.task import Task
from penstock.testing.memorylog import MemoryLog
from penstock.testing.servicelog import MemoryServiceLog

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
WORDS, PRICES = ("words", 0), ("prices", 0)


@record(key="word")
class Word:
    word: str


@record(key="word")
class Price:
    word: str
    price: int


app = App("demo")
words = app.stream("words", Word, partitions=1)
prices = app.table("prices", Price, partitions=1)


@app.service(reads=(words, prices))
def count(word: Word | Price, total: State[int]) -> None:
    total.set(total.get(0) + 1)


# What a join will declare: a state whose rows are those of a table, restored from its own topic.
joined = replace(count, states=(*count.states, StateSpec("price", dict, table="prices")))
CHANGELOG = app.graph.changelog(count).name


class Bench:
    """A log in memory, and tasks that are brought up on it one after another."""

    def __init__(self, shelf_path=None):
        self.log = MemoryLog(app.graph.topics(), clock=lambda: NOW_AT)
        self.below = MemoryServiceLog(app.graph, joined, self.log)
        self.path = shelf_path
        self.read = []

    def price(self, word, price):
        value = None if price is None else b'{"word":"%s","price":%d}' % (word.encode(), price)
        self.log.append("prices", key=word.encode(), value=value, partition=0)

    def word(self, word):
        value = b'{"word":"%s"}' % word.encode()
        self.log.append("words", key=word.encode(), value=value, partition=0)

    def task(self):
        """Return a task as a takeover brings it up."""
        committed = self.log.committed("demo.count")
        starts = {at: committed.get(at, 0) for at in (WORDS, PRICES)}
        delivery = self.below.deliver("0")
        task = Task(
            app.graph,
            joined,
            number=0,
            starts=starts,
            delivery=delivery,
            clock=lambda: NOW_AT,
            shelf=None if self.path is None else open_shelf(self.path, identity="one"),
        )
        restore = Restore(self.below)
        unread = starts.keys() - committed.keys()
        assert restore.run(task, delivery, inputs={}, unread=unread, stop=threading.Event())
        self.read.append(restore.restored)
        task.open()
        return task

    def take_in(self, task):
        """Handle what there is; the rows of the table go to the state as a join will put them."""
        for raw in self.log.read(PRICES, task.positions[PRICES]):
            here = task.step._here
            here.key = raw.key()
            cells = task.step.states.named("price")
            if raw.value() is None:
                cells.remove(here)
            else:
                cells.write(here, {"word": raw.key().decode(), "price": len(raw.value())})
            task.skip_to(PRICES, raw.offset() + 1)
        if found := self.log.read(WORDS, task.positions[WORDS]):
            task.handle(WORDS, found)


def told(task, name, *keys):
    return [task.step.states.named(name).value_of(key.encode()) for key in keys]


def test_a_task_is_restored_from_its_changelog_and_the_topic_of_a_table():
    bench = Bench()
    bench.log.append(CHANGELOG, key=b"total\x00a", value=b"3", partition=0)
    bench.price("a", 5)
    bench.price("b", 6)
    bench.price("b", None)
    bench.log.commit("demo.count", {WORDS: 0, PRICES: 3})
    task = bench.task()
    assert told(task, "total", "a", "b") == [3, None]
    assert told(task, "price", "a", "b") == [{"word": "a", "price": 5}, None]
    assert task.logs == (CHANGELOG, "prices")


def test_a_table_is_restored_up_to_where_the_task_goes_on_with_it():
    bench = Bench()
    bench.price("a", 5)
    bench.price("a", 6)
    bench.log.commit("demo.count", {WORDS: 0, PRICES: 1})
    task = bench.task()
    assert told(task, "price", "a") == [{"word": "a", "price": 5}]
    assert task.positions[PRICES] == 1


def test_the_rows_of_a_table_are_not_written_to_the_changelog():
    bench = Bench()
    task = bench.task()
    bench.price("a", 5)
    bench.word("a")
    bench.take_in(task)
    task.commit()
    keys = {raw.key() for raw in bench.log.read((CHANGELOG, 0))}
    assert b"total\x00a" in keys
    assert not any(key.startswith(b"price") for key in keys)


def test_on_disk_each_log_is_read_on_from_where_the_disk_has_it(tmp_path):
    bench = Bench(tmp_path / "0")
    task = bench.task()
    for number in range(20):
        bench.price(f"{number}", number)
        bench.word("a")
    bench.take_in(task)
    task.snapshot(len(bench.log.read((CHANGELOG, 0))))
    task.commit()
    task.close()
    bench.price("new", 21)
    again = bench.task()
    assert told(again, "total", "a") == [20]
    assert told(again, "price", "3", "new") == [{"word": "3", "price": 22}, None]
    assert again.positions == {WORDS: 20, PRICES: 20}
    assert bench.read[-1] <= 5  # the records of the last commit and two marks, no table
    again.close()


def test_a_disk_that_lags_in_one_log_is_made_whole_from_that_log(tmp_path):
    bench = Bench(tmp_path / "0")
    task = bench.task()
    bench.price("a", 1)
    bench.take_in(task)
    task.commit()
    task.shelf.write([(b"price\x00a", None)], positions={"prices": 0})  # as an older copy has it
    task.close()
    again = bench.task()
    assert told(again, "price", "a") == [{"word": "a", "price": 1}]
    again.close()


def test_a_restore_that_is_not_wanted_any_more_ends():
    bench = Bench()
    delivery, stop = bench.below.deliver("0"), threading.Event()
    task = Task(
        app.graph,
        joined,
        number=0,
        starts={WORDS: 0, PRICES: 0},
        delivery=delivery,
        clock=lambda: NOW_AT,
    )
    stop.set()
    assert not Restore(bench.below).run(task, delivery, inputs={}, unread=(), stop=stop)


def test_a_changelog_without_its_beginning_is_no_state():
    class Trimmed(MemoryServiceLog):
        def batches(self, topic, **_):
            raise ConfigurationError(f"{topic} begins later", code="offset.trimmed")

    bench = Bench()
    bench.below = Trimmed(app.graph, joined, bench.log)
    with pytest.raises(ConfigurationError, match="the state cannot be restored"):
        bench.task()
