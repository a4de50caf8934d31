import logging
from datetime import UTC, datetime, timedelta

import pytest

from penstock import App, on_error, record, retry
from penstock.core.records.deadletter import Coordinates
from penstock.services.step.retries import LOG_INTERVAL, Retried, Retries
from penstock.services.task.task import Task
from penstock.testing.memorylog import MemoryDelivery, MemoryLog

START_AT = datetime(2026, 1, 1, tzinfo=UTC)
PARTITION = ("words", 0)


@record(key="word")
class Word:
    word: str


class Clock:
    def __init__(self):
        self.now_at = START_AT

    def __call__(self):
        return self.now_at

    def move(self, **span):
        self.now_at += timedelta(**span)


def retried(offset=5, *, failed=2):
    return Retried(
        place=Coordinates("words", 0, offset),
        failed=failed,
        tries=101,
        until=START_AT + timedelta(seconds=2),
        reason="count raised ValueError: no",
    )


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def task(clock):
    """A task whose service fails on ``bad``, for as long as it is told to."""
    app = App("demo")
    words = app.stream("words", Word, partitions=1)

    @app.service(reads=words, writes=(), errors=on_error(process=retry(9, first="1s")))
    def count(word: Word) -> None:
        if word.word == "bad" and clock.now_at < START_AT + timedelta(seconds=10):
            raise ValueError("not yet")

    log = MemoryLog(app.graph.topics(), clock=clock)
    for text in (b"a", b"bad", b"c"):
        log.append("words", key=text, value=b'{"word":"%s"}' % text, partition=0)
    delivery = MemoryDelivery(log, group="demo.count", delivery="exactly_once")
    made = Task(app.graph, count, number=0, starts={PARTITION: 0}, delivery=delivery, clock=clock)
    return made, log


def test_a_held_record_is_told_with_its_place_its_tries_and_its_reason():
    assert retried().words(START_AT) == (
        "words[0] offset 5, try 3 of 101 in 2s: count raised ValueError: no"
    )
    assert retried().trouble == (
        "words[0] offset 5 is tried up to 101 times: count raised ValueError: no"
    )


def test_a_timer_has_no_offset():
    assert retried(offset=-1).words(START_AT).startswith("words[0], try 3 of 101 in 2s: ")


def test_a_record_that_failed_once_is_no_trouble_yet():
    assert [retried(failed=failed).lasting for failed in (1, 2, 3)] == [False, True, True]


def test_the_log_gets_the_first_try_and_then_one_now_and_then(clock, caplog):
    retries = Retries("count", clock=clock)
    with caplog.at_level(logging.WARNING):
        for failed in (1, 2, 3):
            retries.add(retried(failed=failed))
        assert [each.getMessage() for each in caplog.records] == [
            "count holds words[0] offset 5, try 2 of 101 in 2s: count raised ValueError: no"
        ]
        clock.now_at += LOG_INTERVAL
        retries.add(retried(failed=4))
    assert caplog.records[-1].getMessage().endswith("(2 more since the last of these lines)")


def test_a_task_tells_what_it_holds_until_the_record_is_done(task, clock):
    made, log = task
    records = log.read(PARTITION)
    assert made.handle(PARTITION, records) == 1
    assert [(each.place.offset, each.failed) for each in made.step.retries] == [(1, 1)]
    clock.move(seconds=1)
    made.release()
    assert made.handle(PARTITION, records) == 0
    assert [(each.place.offset, each.failed) for each in made.step.retries] == [(1, 2)]
    clock.move(seconds=20)
    made.release()
    assert made.handle(PARTITION, records) == 2
    assert not made.step.retries


def test_a_try_that_fails_leaves_nothing_to_commit(task, clock):
    made, log = task
    made.handle(PARTITION, log.read(PARTITION))
    made.commit()
    clock.move(seconds=1)
    made.release()
    made.handle(PARTITION, log.read(PARTITION))
    assert not made.dirty
    assert made.step.tally.counts().received == 1
