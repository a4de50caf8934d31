"""The loop of a worker, round by round, on a log in memory."""

import threading
from concurrent.futures import Executor, Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

import msgspec
import pytest

from penstock import App, State, by_event_time, record
from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.core.settings.settings import KafkaSettings, ServiceSettings, Settings
from penstock.errors import FencedError, TransientError
from penstock.machine.places import Places
from penstock.services.task import timeorder
from penstock.services.task.disk import Disk
from penstock.services.task.factory import TaskFactory
from penstock.services.task.following import Following
from penstock.services.worker.assignment import Assignment
from penstock.services.worker.care import Care
from penstock.services.worker.loop import Loop
from penstock.services.worker.membership import PollInterval
from penstock.services.worker.topicwatch import TopicWatch, topics_of
from penstock.services.worker.work import Activity, Work
from penstock.testing.memorylog import MemoryDelivery, MemoryLog
from penstock.testing.servicelog import MemoryServiceLog

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
ZERO, ONE = ("words", 0), ("words", 1)


@record(key="word")
class Word:
    word: str


@record(key="word")
class Count:
    word: str
    count: int


app = App("demo")
words = app.stream("words", Word, partitions=2)
counts = app.stream("counts", Count, partitions=2)


@app.service(reads=words, writes=counts)
def count(word: Word, total: State[int]) -> Count:
    total.set(total.get(0) + 1)
    return Count(word.word, total.get(0))


@record(key="word", time="at")
class Timed:
    word: str
    at: datetime


early = app.stream("early", Timed, partitions=1)
late = app.stream("late", Timed, partitions=1)
merged = app.stream("merged", Timed, partitions=1)


@app.service(reads=by_event_time(early, late), writes=merged)
def in_order(record: Timed) -> Timed:
    return record


class Now(Executor):
    """Runs what it was given at once."""

    def submit(self, call, /):
        future = Future()
        try:
            future.set_result(call())
        except Exception as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future


class FailingDelivery(MemoryDelivery):
    """A delivery that fails when it sends a word or commits, as often as told to."""

    def __init__(self, log, below):
        super().__init__(log, group=below.group, delivery="exactly_once")
        self._below = below

    def send(self, topic, /, **record):
        if self._below.refused and self._below.refused[0] in (record["value"] or b""):
            self._below.refused.pop(0)
            raise TransientError("the transaction is too old", code="test")
        super().send(topic, **record)

    def commit(self, offsets):
        if self._below.at_commit:
            raise self._below.at_commit.pop()
        return super().commit(offsets)


class FailingLog(MemoryServiceLog):
    """A log in memory whose deliveries fail when told to."""

    def __init__(self, log, service):
        super().__init__(app.graph, service, log)
        self.group = f"demo.{service.name}"
        self.refused = []
        self.at_commit = []

    def deliver(self, _task):
        return FailingDelivery(self.log, self)


class Bench:
    """A worker's loop on a log in memory, without the worker around it."""

    def __init__(self, *, timeout=timedelta(minutes=1), settings=None, service=count):
        self.now_at = NOW_AT
        self.log = MemoryLog(app.graph.topics(), clock=lambda: self.now_at)
        self.below = FailingLog(self.log, service)
        settings = settings or ServiceSettings(commit_interval=timedelta())
        site = Site(
            settings=Settings(services=settings),
            places=Places(Path("/nowhere")),
            connection=Connection("nowhere:1", KafkaSettings()),
            stop=threading.Event(),
            report=lambda _: None,
        )
        disk = Disk(app.graph, service, site, log=self.below)
        factory = TaskFactory(app.graph, service, self.below, disk=disk)
        self.work = Work(
            group=self.below.group,
            assignment=Assignment(factory, settings=settings, executor=Now()),
            disk=disk,
            following=Following(self.below, {}),
            care=Care(timeout),
            poll_interval=PollInterval("count", settings.poll_interval),
            activity=Activity(service.name),
            topics=TopicWatch(
                self.below.group,
                *topics_of(app.graph, service),
                keeps_state=service.keeps_state,
                shapes=self.below.shapes,
            ),
        )
        self.member = self.below.join(
            self.work.assignment.listener(), poll_interval=settings.poll_interval
        )
        self.loop = Loop(self.work, self.member, service=service, settings=settings)

    def write(self, partition, *texts):
        for text in texts:
            value = b'{"word":"%s"}' % text.encode()
            self.log.append("words", key=text.encode(), value=value, partition=partition[1])

    def rounds(self, times):
        for _ in range(times):
            self.loop.round(monotonic())

    @property
    def counted(self):
        read = (self.log.read(("counts", number)) for number in (0, 1))
        return sorted(raw.value() for records in read for raw in records)

    @property
    def committed(self):
        return self.log.committed(self.below.group)


def counted(word, number):
    return b'{"word":"%s","count":%d}' % (word.encode(), number)


@pytest.fixture
def bench():
    return Bench()


def test_records_are_taken_handled_and_committed(bench):
    bench.write(ZERO, "a", "b", "a")
    bench.write(ONE, "c")
    bench.rounds(4)
    assert bench.counted == [
        counted("a", 1),
        counted("a", 2),
        counted("b", 1),
        counted("c", 1),
    ]
    assert bench.committed == {ZERO: 3, ONE: 1}
    assert bench.work.measures.latency.series("x")


def test_a_partition_that_is_taken_away_is_committed_and_the_others_go_on(bench):
    bench.rounds(3)
    bench.write(ZERO, "a")
    bench.write(ONE, "b")
    bench.member.revoke([ZERO])
    bench.rounds(2)
    assert bench.committed.get(ZERO, 0) == 0
    assert bench.committed[ONE] == 1
    assert set(bench.work.assignment.running) == {ONE}
    bench.member.give([ZERO])
    bench.rounds(4)
    assert bench.counted == [counted("a", 1), counted("b", 1)]


def test_a_task_that_fails_begins_again_from_what_it_committed(bench):
    bench.rounds(3)
    bench.write(ZERO, "a")
    bench.below.at_commit.append(TransientError("no answer", code="test"))
    bench.rounds(1)
    assert bench.work.assignment.setbacks == {"0": "no answer"}
    bench.rounds(4)
    assert bench.counted == [counted("a", 1)]
    assert bench.work.assignment.setbacks == {}
    assert bench.work.assignment.failures == 1


def test_a_fenced_task_ends_the_membership(bench):
    bench.rounds(3)
    bench.write(ZERO, "a")
    bench.below.at_commit.append(FencedError("another has it", code="test"))
    with pytest.raises(FencedError, match="another has it"):
        bench.rounds(2)


def test_a_record_whose_transaction_was_too_long_is_handled_alone_afterwards():
    bench = Bench(timeout=timedelta(microseconds=1))
    bench.rounds(3)
    handled = []
    bench.write(ZERO, "a", "b", "slow", "d")
    bench.below.refused.append(b"slow")
    bench.rounds(1)
    assert bench.counted == []
    for _ in range(6):
        bench.rounds(1)
        handled.append(len(bench.counted))
    # One by one up to the end of the batch that failed, each with a commit of its own.
    assert handled[-1] == 4
    assert {1, 2, 3} <= set(handled)
    assert not bench.work.care


def test_after_a_failure_that_was_quick_records_are_not_handled_alone():
    bench = Bench(timeout=timedelta(minutes=1))
    bench.rounds(3)
    bench.write(ZERO, "a", "b", "c", "d")
    bench.below.refused.append(b'"c"')
    bench.rounds(1)
    assert not bench.work.care
    bench.rounds(3)
    assert len(bench.counted) == 4


def test_a_membership_that_ends_in_the_middle_of_long_work_leaves_care_behind():
    bench = Bench(
        timeout=timedelta(microseconds=1),
        settings=ServiceSettings(commit_interval=timedelta(seconds=10)),
    )
    bench.rounds(3)
    bench.write(ZERO, "a")
    bench.rounds(1)  # is committed at once: it was quiet before
    bench.write(ZERO, "b")
    bench.rounds(1)
    assert bench.committed[ZERO] == 1
    bench.loop.look_back()
    assert bench.work.care.needed(())
    bench.work.care.passed({ZERO: 1}, wakes_at=None)
    assert bench.work.care
    bench.work.care.passed({ZERO: 2}, wakes_at=None)
    assert not bench.work.care


def test_who_was_silent_too_long_joins_anew_with_twice_the_time(bench):
    bench.rounds(1)
    silent = bench.work.poll_interval.allowed.total_seconds() + 60
    with pytest.raises(TransientError, match="is made again, with twice the time it took"):
        bench.loop.round(monotonic() - silent)
    assert bench.work.poll_interval.allowed > timedelta(seconds=2 * silent - 1)


def test_a_log_that_cannot_be_reached_is_the_trouble(bench):
    bench.member.unreachable = "Kafka is away"
    bench.rounds(1)
    assert bench.work.trouble == "Kafka is away"


def test_what_was_skipped_is_counted_and_committed(bench):
    bench.rounds(3)
    bench.write(ZERO, "a", "b", "c")
    bench.work.assignment.skip(ZERO, 0, 2)
    bench.rounds(2)
    assert bench.work.assignment.skipped.offsets == 2
    assert bench.committed[ZERO] == 3
    assert bench.counted == [counted("c", 1)]


def test_a_backlog_is_merged_by_time_whole_however_much_of_one_stream_has_to_wait(monkeypatch):
    monkeypatch.setattr(timeorder, "MOST_WAITING", 20)
    bench = Bench(service=in_order)
    for number in range(110):
        topic = "late" if 5 <= number < 100 else "early"
        at = (NOW_AT + timedelta(seconds=number)).isoformat()
        value = b'{"word":"w","at":"%s"}' % at.encode()
        bench.log.append(topic, key=b"w", value=value, partition=0)
    deadline = monotonic() + 30
    while sum(bench.committed.values()) < 110 and monotonic() < deadline:
        bench.rounds(1)
    found = [msgspec.json.decode(raw.value())["at"] for raw in bench.log.read(("merged", 0))]
    assert len(found) == 110
    assert found == sorted(found)
