"""Positioned sources without a broker: what is on the log after whatever went wrong."""

import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import App, record
from penstock.connectors.connector import Item
from penstock.connectors.progress import Progress
from penstock.connectors.retrying import Retries
from penstock.connectors.source.outlet import Outlet
from penstock.connectors.source.pacing import KEEP_SECONDS, slice_seconds
from penstock.connectors.source.positions import load_positions
from penstock.connectors.source.session import Run, Session
from penstock.errors import ConfigurationError, TransientError

AWAY = TransientError("it is away", code="test.away")


@record()
class Number:
    value: int


class Lists:
    """Splits that are lists of numbers; a position is how many of them were read."""

    interactive = False
    grows = False

    def __init__(self, **splits: Sequence[object]) -> None:
        self.content = splits
        self.opened: list[tuple[str, object]] = []
        self.closed: list[str] = []

    def describe(self) -> str:
        return "lists"

    def splits(self) -> list[str]:
        return list(self.content)

    def open(self, split: str, position: int | None) -> "ListReading":
        self.opened.append((split, position))
        return ListReading(self, split, position or 0)


class ListReading:
    """One pass over one list, three items at a time."""

    def __init__(self, lists: Lists, split: str, at: int) -> None:
        self._lists, self._split, self._at = lists, split, at

    @property
    def ended(self) -> bool:
        return self._at >= len(self._lists.content[self._split])

    def read(self) -> list[Item]:
        start, self._at = self._at, self._at + 3
        content = self._lists.content[self._split][start : start + 3]
        self._at = start + len(content)
        return [Item(each, start + number) for number, each in enumerate(content)]

    def position_after(self, item: Item) -> int:
        return item.at + 1

    def close(self) -> None:
        self._lists.closed.append(self._split)


class MemoryLog:
    """A log in memory: it takes a transaction as a whole, and fails when it is told to."""

    def __init__(self, *, fails: frozenset[int] = frozenset()) -> None:
        self.records: list[tuple[str, bytes | None, bytes | None]] = []
        self.commits = 0
        self._open: list[tuple[str, bytes | None, bytes | None]] = []
        self._fails = fails
        self._calls = 0

    def begin(self) -> None:
        self._call()
        self._open = []

    def send(self, topic, *, key, value, **_) -> None:
        self._call()
        self._open.append((topic, key, value))

    def commit(self) -> None:
        self._call()
        self.records += self._open
        self.commits += 1
        # What became of a commit that fails is not known: here it is the log that took it.
        self._call()

    def _call(self) -> None:
        self._calls += 1
        if self._calls in self._fails:
            raise AWAY

    def on(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        return [(key, value) for at, key, value in self.records if at == topic]


class Source:
    """A source over lists, run against a log in memory."""

    def __init__(self, lists: Lists, log: MemoryLog, *, parse=Number) -> None:
        app = App("shop")
        numbers = app.stream("numbers", Number, partitions=1)
        self.source = app.source("in", lists, into=numbers, parse=parse)
        self.graph = app.graph
        self.lists, self.log = lists, log
        self.stop = threading.Event()
        self.progress = Progress("in", lambda _: None)
        self.now = 0.0

    def run(self) -> None:
        run = Run(
            topic="shop.in.positions",
            stop=self.stop,
            progress=self.progress,
            slice_seconds=slice_seconds(timedelta(seconds=10)),
            retries=Retries(),
            clock=lambda: self.now,
        )
        session = Session(
            run,
            connector=self.lists,
            outlet=Outlet(self.graph, self.source, self.log),
            producer=self.log,
            positions=load_positions(self.log.on("shop.in.positions")),
        )
        with closing(session):
            session.read_on()

    @property
    def numbers(self) -> list[bytes | None]:
        return [value for _, value in self.log.on("numbers")]


def test_every_split_is_read_to_its_end_and_closed_once():
    lists = Lists(a=[1, 2, 3, 4], b=[5], c=[])
    source = Source(lists, MemoryLog())
    source.run()
    assert sorted(source.numbers) == [b'{"value":%d}' % number for number in range(1, 6)]
    assert sorted(lists.closed) == ["a", "b", "c"]
    report = source.progress.snapshot()
    assert (report.reason, report.counts.passed) == ("read to its end", 5)
    assert report.detail["splits"] == "3 of 3 read to the end"


def test_a_run_goes_on_behind_what_each_split_has_committed():
    log = MemoryLog()
    Source(Lists(a=[1, 2], b=[]), log).run()
    lists = Lists(a=[1, 2, 3], b=[4])
    Source(lists, log).run()
    assert lists.opened == [("a", 2), ("b", None)]
    assert len(log.on("numbers")) == 4


def test_a_connector_says_what_is_wrong_though_its_source_goes_on():
    class Complaining(Lists):
        def complaint(self) -> str:
            return "b is not there"

        def facts(self) -> dict[str, str]:
            return {"lists": "1"}

    source = Source(Complaining(a=[1]), MemoryLog())
    source.progress.running()
    source.run()
    report = source.progress.snapshot()
    assert (report.state, report.reason) == ("degraded", "b is not there")
    assert report.detail["lists"] == "1"


def test_a_position_that_moves_without_an_item_is_kept_before_the_next_read():
    log = MemoryLog()
    seen: list[int] = []

    class Moving(ListReading):
        def read(self) -> list[Item]:
            seen.append(len(log.on("shop.in.positions")))
            return super().read()

        def moved(self) -> int | None:
            return 77 if len(seen) == 2 else None

    class Moves(Lists):
        def open(self, split: str, position: int | None) -> Moving:
            return Moving(self, split, position or 0)

    Source(Moves(a=[1, 2]), log).run()
    assert [value for _, value in log.on("shop.in.positions")] == [b"2", b"77"]
    assert seen == [0, 1, 2]


@given(
    st.frozensets(st.integers(1, 40), max_size=6),
    st.lists(st.integers(0, 99), max_size=9),
    st.lists(st.integers(100, 199), max_size=9),
)
def test_whatever_call_fails_each_item_is_on_the_log_once(fails, first, second):
    log = MemoryLog(fails=fails)
    for _ in range(len(fails) + 1):
        try:
            Source(Lists(a=first, b=second), log).run()
        except TransientError:
            continue
        break
    expected = sorted(b'{"value":%d}' % number for number in [*first, *second])
    assert sorted(value for _, value in log.on("numbers")) == expected


def test_records_are_written_a_second_apart_however_slow_parse_is():
    log = MemoryLog()

    def parse(value: int) -> Number:
        source.now += 0.5
        return Number(value)

    source = Source(Lists(a=[1, 2, 3]), log, parse=parse)
    source.run()
    assert log.commits == 2
    assert [value for _, value in log.on("shop.in.positions")] == [b"2", b"3"]


def test_a_stop_takes_effect_between_two_items():
    log = MemoryLog()

    def parse(value: int) -> Number:
        source.stop.set()
        return Number(value)

    source = Source(Lists(a=[1, 2, 3]), log, parse=parse)
    source.run()
    assert [value for _, value in log.on("shop.in.positions")] == [b"1"]


class Growing(Lists):
    """Splits that are added while the source runs."""

    grows = True

    def __init__(self, source_of: list[Source]) -> None:
        super().__init__(a=[1])
        self._source_of = source_of
        self.looks = 0

    def splits(self) -> list[str]:
        (source,) = self._source_of
        self.looks += 1
        if self.looks == 2:
            self.content["b"] = [2]
        if self.looks == 3:
            source.stop.set()
        return list(self.content)


def test_splits_that_are_added_are_found_while_it_runs():
    sources: list[Source] = []
    log = MemoryLog()
    lists = Growing(sources)
    sources.append(Source(lists, log))
    (source,) = sources

    class Clockwork:
        def wait(self, timeout: float) -> None:
            source.now += timeout

        is_set = source.stop.is_set
        set = source.stop.set

    source.stop = Clockwork()
    source.run()
    assert lists.opened == [("a", None), ("b", None)]
    assert len(log.on("numbers")) == 2


def test_an_idle_source_writes_a_position_again_so_that_its_producer_is_remembered():
    log = MemoryLog()
    sources: list[Source] = []
    lists = Growing(sources)
    lists.looks = 3
    source = Source(lists, log)
    sources.append(source)

    class Clockwork:
        def wait(self, _timeout: float) -> None:
            source.now += KEEP_SECONDS
            if source.now > 2 * KEEP_SECONDS:
                source.stop.set()

        is_set = source.stop.is_set
        set = source.stop.set

    source.stop = Clockwork()
    source.run()
    assert [value for _, value in log.on("shop.in.positions")] == [b"1", b"1", b"1"]
    assert len(log.on("numbers")) == 1


def test_a_position_that_would_not_come_back_stops_the_source_before_it_is_committed(monkeypatch):
    monkeypatch.setattr(ListReading, "position_after", lambda _, item: (item.at, 1))
    log = MemoryLog()
    with pytest.raises(ConfigurationError, match="is not a JSON value"):
        Source(Lists(a=[1]), log).run()
    assert log.records == []
