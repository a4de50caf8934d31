"""Committed state of a whole task, read while it works."""

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from penstock import App, State, record
from penstock.aggregates import count as counted
from penstock.aggregates import total
from penstock.core.panes.packing import encode
from penstock.core.wiring.panes import rollup_of
from penstock.services.state.shelf import open_shelf
from penstock.services.task.task import Task
from penstock.state import ListState, MapState
from penstock.testing.memorylog import MemoryDelivery, MemoryLog
from penstock.windows import fixed

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("words", 0)


@record(key="word")
class Word:
    word: str
    weight: int


app = App("demo")
words = app.stream("words", Word, partitions=1)


@app.service(reads=words)
def add(word: Word, sums: State[int], last: ListState[int], by: MapState[str, int]) -> None:
    sums.set(sums.get(0) + word.weight)
    last.set([word.weight])
    by.set(f"{word.weight % 3}", word.weight)


ROWS = [(f"k{number * 7919 % 61}", number % 11) for number in range(6_000)]


def fold(rows):
    """Return what the service must hold after these inputs."""
    sums, last, by = Counter(), {}, {}
    for word, weight in rows:
        sums[word.encode()] += weight
        last[word.encode()] = [weight]
        by.setdefault(word.encode(), {})[f"{weight % 3}"] = weight
    return dict(sums), last, by


class Watcher:
    """Reads cut after cut in a thread of its own, and compares each with its inputs."""

    def __init__(self, committed):
        self.wrong = []
        self.seen = set()
        self.looked = threading.Semaphore(0)
        self._committed = committed
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self):
        self._ended.set()
        self._thread.join(60)

    def _run(self):
        while not self._ended.is_set():
            with self._committed.cut() as cut:
                position = cut.positions[WORDS]
                found = tuple(dict(cut.scan(state)) for state in ("sums", "last", "by"))
                one = cut.get("sums", b"k7")
            expected = fold(ROWS[:position])
            if found != expected or one != expected[0].get(b"k7"):
                self.wrong.append(position)
            self.seen.add(position)
            self.looked.release()


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_under_load_every_cut_is_the_fold_of_the_inputs_up_to_its_positions(kind, tmp_path):
    log = MemoryLog(app.graph.topics(), clock=lambda: NOW_AT)
    for word, weight in ROWS:
        value = b'{"word":"%s","weight":%d}' % (word.encode(), weight)
        log.append("words", key=word.encode(), value=value, partition=0)
    task = Task(
        app.graph,
        add,
        number=0,
        starts={WORDS: 0},
        delivery=MemoryDelivery(log, group="demo.add", delivery="exactly_once"),
        clock=lambda: NOW_AT,
        shelf=open_shelf(tmp_path / "0", identity="one") if kind == "disk" else None,
    )
    task.open()
    watchers = [Watcher(task.reading) for _ in range(2)]
    records = log.read(WORDS)
    for number, at in enumerate(range(0, len(records), 20)):
        task.handle(WORDS, records[at : at + 20])
        if number % 3 == 0:
            task.commit()
        if number % 25 == 0:  # let them have a look at what is there by now
            assert watchers[number // 25 % 2].looked.acquire(timeout=60)
    for watcher in watchers:
        watcher.end()
        assert watcher.wrong == []
        assert len(watcher.seen) > 1
    task.close()


@record(key="word", time="at")
class Seen:
    word: str
    at: datetime
    weight: int


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_the_windows_of_a_group_are_those_of_the_last_commit(kind, tmp_path):
    windowed = App("windowed")
    seen = windowed.stream("seen", Seen, partitions=1)
    made = seen.window(fixed("1m"), by="word").aggregate(n=counted(), weight=total("weight"))
    windowed.stream("panes", made, on="services")
    (service,) = windowed.graph.parts
    log = MemoryLog(windowed.graph.topics(), clock=lambda: NOW_AT)
    task = Task(
        windowed.graph,
        service,
        number=0,
        starts={("seen", 0): 0},
        delivery=MemoryDelivery(log, group="windowed.panes", delivery="exactly_once"),
        clock=lambda: NOW_AT,
        shelf=open_shelf(tmp_path / "0", identity="one") if kind == "disk" else None,
    )
    task.open()

    def see(weight, seconds):
        at = (NOW_AT + timedelta(seconds=seconds)).isoformat()
        value = b'{"word":"a","at":"%s","weight":%d}' % (at.encode(), weight)
        log.append("seen", key=b"a", value=value, partition=0)
        task.handle(("seen", 0), log.read(("seen", 0), task.positions["seen", 0]))

    group = encode(["a"])
    assert rollup_of(service).groups
    see(2, 1)
    see(3, 2)
    task.commit()
    with task.reading.cut() as cut:
        see(5, 3)
        see(7, 70)
        task.commit()
        (window,) = cut.get("windows", group)
        assert window.results == [2, 5]
        assert window.end - window.start == 60_000_000
        assert cut.positions == {("seen", 0): 2}
    with task.reading.cut() as cut:
        ((found, windows),) = cut.scan("windows")
        assert found == group
        assert 7 in [each.results[1] for each in windows]
    task.close()
