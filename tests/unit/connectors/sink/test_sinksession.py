"""Sinks without a broker: what the outside system has after whatever went wrong."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import App, record
from penstock.connectors.connector import BatchLimits, Row, RowsRefusedError
from penstock.connectors.progress import Progress
from penstock.connectors.retrying import Retries
from penstock.connectors.sink.session import Run, Session
from penstock.core.rules.check import check
from penstock.errors import TransientError

AWAY = TransientError("it is away", code="test.away")


@record()
class Number:
    value: int


@record(key="value")
class Keyed:
    value: int


@dataclass
class Raw:
    """A record as the client hands it over."""

    at: tuple[int, int]
    content: bytes | None

    def topic(self) -> str:
        return "numbers"

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]

    def key(self) -> None:
        return None

    def value(self) -> bytes | None:
        return self.content

    def headers(self) -> None:
        return None


class Outside:
    """A stream, a group, a dead-letter topic and a system, which all fail when told to."""

    delivery = "exactly_once"
    limits = BatchLimits(rows=3, span=timedelta(seconds=5))

    def __init__(self, *contents: Sequence[bytes], fails: frozenset[int] = frozenset()) -> None:
        self.contents = contents
        self.group: dict[int, int] = {}
        self.rows: list[tuple[int, object]] = []
        self.values: list[bytes] = []
        self.written: dict[int, int] = {}
        self.letters: list[bytes | None] = []
        self.writes = 0
        self.written_at = 0.0
        self.now = 0.0
        self.idle_looks = 0
        self.stop = threading.Event()
        self._fails = fails
        self._calls = 0
        self._read: dict[int, int] = {}

    def describe(self) -> str:
        return "a list"

    def open(self, _sink: object) -> "Outside":
        self._read = dict(self.group)
        return self

    def consume(self, count: int, timeout: float) -> list[Raw]:
        self._call()
        found = []
        for partition, content in enumerate(self.contents):
            start = self._read.get(partition, 0)
            found += [Raw((partition, at), content[at]) for at in range(start, len(content))][:2]
            self._read[partition] = min(start + 2, len(content))
        assert len(found) <= count
        self.now += timeout
        if not found:
            self.idle_looks -= 1
            if self.idle_looks < 0:
                self.stop.set()
        return found

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        self._call()
        self.group |= {partition: offset for (_, partition), offset in offsets.items()}

    def send(self, _topic, *, value, **_) -> None:
        self.letters.append(value)

    def flush(self, _timeout: timedelta) -> None:
        self._call()

    def positions(self) -> dict[int, int]:
        self._call()
        return self.written

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
        self._call()
        self.rows += [(partition, row.record.value) for row in rows]
        self.values += [row.value for row in rows]
        self.written[partition] = position
        self.writes += 1
        self.written_at = self.now
        self._call()

    def close(self) -> None:
        pass

    def _call(self) -> None:
        self._calls += 1
        if self._calls in self._fails:
            raise AWAY


def run(outside: Outside, progress: Progress | None = None) -> None:
    app = App("shop")
    sink = app.sink("out", outside, reads=app.stream("numbers", Number))
    outside.stop.clear()
    session = Session(
        Run(
            sink=sink,
            limits=outside.limits,
            dead_letters="shop.dead-letters",
            stop=outside.stop,
            progress=progress or Progress("out", lambda _: None, kind="sink"),
            retries=Retries(),
            clock=lambda: outside.now,
        ),
        writer=outside.open(sink),
        letters=outside,
    )
    session.read_on(outside)


def values(count: int) -> list[bytes]:
    return [b'{"value":%d}' % number for number in range(count)]


def test_records_are_written_in_batches_in_the_order_of_their_partition():
    outside, progress = Outside(values(7), values(1)), Progress("out", lambda _: None, kind="sink")
    run(outside, progress)
    assert [number for partition, number in outside.rows if partition == 0] == list(range(7))
    assert outside.group == {0: 7, 1: 1}
    assert outside.writes == 4
    report = progress.snapshot()
    assert (report.kind, report.counts.passed, report.counts.in_flight) == ("sink", 8, 0)


def test_a_record_that_does_not_decode_is_a_dead_letter_and_the_others_are_written():
    outside, progress = Outside([b"1", *values(2), b"{"]), Progress("out", lambda _: None)
    run(outside, progress)
    assert outside.letters == [b"1", b"{"]
    assert len(outside.rows) == 2
    assert outside.group == {0: 4}
    assert progress.snapshot().counts.dead_lettered == 2


@given(st.frozensets(st.integers(1, 40), max_size=6), st.integers(0, 12), st.integers(0, 12))
def test_whatever_call_fails_each_record_is_outside_once(fails, first, second):
    outside = Outside(values(first), values(second), fails=fails)
    for _ in range(len(fails) + 1):
        try:
            run(outside)
        except TransientError:
            continue
        break
    expected = [(0, number) for number in range(first)] + [(1, number) for number in range(second)]
    assert sorted(outside.rows) == expected
    assert outside.group == {
        partition: count for partition, count in ((0, first), (1, second)) if count
    }


def test_records_that_were_written_before_are_left_out_however_slowly_they_come():
    outside = Outside(values(9))
    outside.limits = BatchLimits(rows=3, span=timedelta(seconds=0.05))
    outside.written = {0: 6}
    run(outside)
    assert outside.rows == [(0, 6), (0, 7), (0, 8)]
    assert outside.group == {0: 9}


def test_a_batch_that_is_not_full_is_written_when_its_time_has_come():
    outside = Outside(values(1))
    outside.idle_looks = 60
    run(outside)
    assert 5.0 <= outside.written_at <= 5.3
    assert outside.now > 6


def test_what_a_lost_partition_held_is_not_written():
    outside = Outside(values(2))
    progress = Progress("out", lambda _: None, kind="sink")
    app = App("shop")
    sink = app.sink("out", outside, reads=app.stream("numbers", Number))
    settings = Run(
        sink=sink,
        limits=outside.limits,
        dead_letters="shop.dead-letters",
        stop=outside.stop,
        progress=progress,
        retries=Retries(),
    )
    session = Session(settings, writer=outside.open(sink), letters=outside)
    consume = outside.consume

    def lose_then_stop(count: int, timeout: float) -> list[Raw]:
        if outside.stop.is_set():
            return []
        found = consume(count, timeout)
        if not found:
            session.lose([("numbers", 0)])
        return found

    outside.consume = lose_then_stop
    session.read_on(outside)
    assert outside.rows == []
    assert progress.snapshot().counts.received == 0
    with pytest.raises(KeyError):
        outside.group[0]


def test_bytes_that_are_no_text_in_a_field_that_nobody_declared_are_left_out():
    outside = Outside([b'{"value":1,"note":"caf\xc3\xa9"}', b'{"value":2,"note":"\xff"}'])
    run(outside)
    assert outside.values == [b'{"value":1,"note":"caf\xc3\xa9"}', b'{"value":2}']


def test_rows_that_are_refused_become_dead_letters_and_the_others_are_written():
    class Choosy(Outside):
        def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
            odd = {
                n: f"no {row.record.value}" for n, row in enumerate(rows) if row.record.value % 2
            }
            if odd:
                raise RowsRefusedError(odd)
            super().write(partition, rows, position)

    outside, progress = Choosy(values(7)), Progress("out", lambda _: None, kind="sink")
    run(outside, progress)
    assert [number for _, number in outside.rows] == [0, 2, 4, 6]
    assert outside.letters == [b'{"value":1}', b'{"value":3}', b'{"value":5}']
    assert outside.group == {0: 7}
    counts = progress.snapshot().counts
    assert (counts.passed, counts.dead_lettered, counts.in_flight) == (4, 3, 0)


def test_a_connector_that_cannot_delete_is_not_given_a_table():
    app = App("shop")
    app.sink("out", Outside(), reads=app.table("rows", Keyed))
    assert [problem.code for problem in check(app.graph)] == ["sink.no-deletions"]
