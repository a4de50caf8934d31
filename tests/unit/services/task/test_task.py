from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from penstock import App, State, record
from penstock.core.graph.parts import Service
from penstock.core.rules.check import verified
from penstock.core.status.report import Counts
from penstock.core.wiring.lookup import find_part
from penstock.errors import ConfigurationError, TransientError
from penstock.services.task import task as task_module
from penstock.services.task.task import Task, task_name
from penstock.testing.memorylog import MemoryDelivery, MemoryLog

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="word")
class Word:
    word: str


@record(key="word")
class Count:
    word: str
    count: int


app = App("demo")
words = app.stream("words", Word)
others = app.stream("others", Word, partitions=3)
counts = app.stream("counts", Count)


@app.service(reads=words, writes=counts)
def count(word: Word, total: State[int]) -> Count:
    total.set(total.get(0) + 1)
    return Count(word.word, total.get(0))


@app.service(reads=(words, others), writes=())
def look(word: Word) -> None: ...


@pytest.fixture
def log():
    return MemoryLog(app.graph.topics(), clock=lambda: NOW_AT)


@pytest.fixture
def task(log):
    delivery = MemoryDelivery(log, group="demo.count", delivery="exactly_once")
    return Task(
        app.graph,
        count,
        number=1,
        starts={("words", 1): 0},
        delivery=delivery,
        clock=lambda: NOW_AT,
    )


def fill(log, *texts):
    for text in texts:
        log.append("words", key=text.encode(), value=b'{"word":"%s"}' % text.encode(), partition=1)
    return log.read(("words", 1))


def values(log, topic):
    return [raw.value() for at in log.partitions(topic) for raw in log.read(at)]


def test_outputs_changelog_and_offsets_appear_together_at_the_commit(log, task):
    task.handle(("words", 1), fill(log, "a", "b", "a"))
    assert task.dirty
    assert task.uncommitted == 3
    assert values(log, "counts") == []
    task.commit()
    assert len(values(log, "counts")) == 3
    changelog = log.read(("demo.count.changelog", 1))
    assert {raw.key(): raw.value() for raw in changelog} == {
        b"total\x00a": b"2",
        b"total\x00b": b"1",
    }
    assert log.committed("demo.count") == {("words", 1): 3}
    assert not task.dirty
    assert task.committed == task.positions == {("words", 1): 3}


def test_records_before_the_position_are_not_handled_twice(log, task):
    records = fill(log, "a", "b", "c")
    task.handle(("words", 1), records[:2])
    task.handle(("words", 1), records)
    task.handle(("words", 1), records[:1])
    task.commit()
    assert task.step.tally.counts() == Counts(received=3, passed=3, written=3)
    assert log.committed("demo.count") == {("words", 1): 3}


def test_offsets_that_hold_no_records_are_committed_without_any_work(log, task):
    task.skip_to(("words", 1), 5)
    task.skip_to(("words", 1), 4)
    task.commit()
    assert log.committed("demo.count") == {("words", 1): 5}
    task.commit()
    assert not task.dirty


def test_a_record_that_waits_to_be_tried_again_is_not_skipped(log, task):
    task.holds["words", 1] = NOW_AT
    task.skip_to(("words", 1), 5)
    assert not task.dirty
    assert task.release() == [("words", 1)]
    assert task.positions == {("words", 1): 0}


def test_a_closed_task_leaves_nothing_and_forgets_what_it_counted(log, task):
    task.handle(("words", 1), fill(log, "a"))
    task.close()
    assert values(log, "counts") == []
    assert log.committed("demo.count") == {}
    assert task.step.tally.counts() == Counts()


def test_a_commit_that_fails_does_not_pass_for_done(log, task):
    def refuse(offsets):
        raise ConnectionError

    task._delivery.commit = refuse
    task.handle(("words", 1), fill(log, "a"))
    with pytest.raises(ConnectionError):
        task.commit()
    assert task.dirty
    assert task.committed == {("words", 1): 0}
    assert task.step.tally.counts() == Counts(received=1, in_flight=1)


def test_what_is_left_of_records_handled_half_way_is_never_committed(log, task):
    records = fill(log, "a", "b")
    sends = []

    class Failing(MemoryDelivery):
        def send(self, topic, /, **named):
            if sends:
                raise ConfigurationError("the topic is gone", code="topic.missing")
            sends.append(topic)
            super().send(topic, **named)

    task._delivery = Failing(log, group="demo.count")
    with pytest.raises(ConfigurationError):
        task.handle(("words", 1), records)
    with pytest.raises(TransientError, match="half-way"):
        task.commit()
    assert values(log, "counts") == []
    assert log.committed("demo.count") == {}


def test_a_commit_that_failed_is_not_tried_again_with_what_is_left(log, task):
    """Its transaction was aborted: a second attempt would write the changelog without outputs."""
    commit = task._delivery.commit

    def refuse(offsets):
        task._delivery.commit = commit
        task._delivery._pending.clear()
        raise TransientError("aborted", code="transaction.aborted")

    task._delivery.commit = refuse
    task.handle(("words", 1), fill(log, "a"))
    with pytest.raises(TransientError, match="aborted"):
        task.commit()
    with pytest.raises(TransientError, match="half-way"):
        task.commit()
    assert log.committed("demo.count") == {}
    assert values(log, "demo.count.changelog") == []


def test_state_and_single_inputs_share_a_task_by_number_others_do_not():
    assert task_name(count, ("words", 1)) == "1"
    assert task_name(look, ("words", 1)) == "words:1"
    assert task_name(look, ("others", 1)) == "others:1"


@record(key="word", time="at")
class Timed:
    word: str
    at: int


pairing = App("pairing")
early, late = pairing.stream("early", Timed), pairing.stream("late", Timed)
pairing.stream("pairs", early.join(late, on="word", within="1m"), on="services")


@pytest.mark.parametrize("most_merged", [1, 2_000])
def test_backlogs_that_an_operator_takes_as_one_moment_give_what_they_give_one_by_one(
    most_merged, monkeypatch
):
    monkeypatch.setattr(task_module, "MOST_MERGED", most_merged)
    written = iter(range(10_000))
    log = MemoryLog(
        pairing.graph.topics(), clock=lambda: NOW_AT + timedelta(milliseconds=next(written))
    )
    service = find_part(verified(pairing.graph), "pairs.filling", Service)
    starts = {("early", 0): 0, ("late", 0): 0}
    delivery = MemoryDelivery(log, group="pairing.pairs.filling", delivery="exactly_once")
    task = Task(
        pairing.graph, service, number=0, starts=starts, delivery=delivery, clock=lambda: NOW_AT
    )
    task.open()
    for number in range(60):
        # Every tenth of each stream does not decode: at the same offset of both.
        at = b"x" if number // 2 % 10 == 9 else b"%d" % number
        word = b"ab"[number % 4 // 2 :][:1]
        value = b'{"word":"%s","at":%s}' % (word, at)
        log.append(("early", "late")[number % 2], key=word, value=value, partition=0)
    for partition in starts:
        task.handle(partition, log.read(partition))
    task.tick()
    task.commit()
    assert task.positions == {("early", 0): 30, ("late", 0): 30}
    counts = task.step.tally.counts()
    assert (counts.received, counts.dead_lettered, counts.passed) == (60, 6, 54)
    found = [msgspec.json.decode(each) for each in values(log, "pairs")]
    met = sorted((each["early"]["at"], each["late"]["at"]) for each in found)
    good = [number for number in range(60) if number // 2 % 10 != 9]
    assert met == [
        (one, other)
        for one in good
        for other in good
        if one % 2 == 0 and other % 2 == 1 and one % 4 // 2 == other % 4 // 2
    ]
