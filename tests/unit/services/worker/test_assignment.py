"""The tasks of a worker come and go: every order of events leaves them right."""

from concurrent.futures import Executor, Future
from datetime import UTC, datetime, timedelta

import pytest

from penstock import App, State, record
from penstock.backbone.log.membership import Listener
from penstock.core.settings.settings import ServiceSettings
from penstock.core.status.report import Counts
from penstock.errors import ConfigurationError, FencedError, TransientError
from penstock.services.task.factory import TaskFactory
from penstock.services.worker.assignment import Assignment, Outcome
from penstock.testing.memorylog import MemoryDelivery, MemoryLog
from penstock.testing.servicelog import MemoryMember, MemoryServiceLog

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
words = app.stream("words", Word)
counts = app.stream("counts", Count)


@app.service(reads=words, writes=counts)
def count(word: Word, total: State[int]) -> Count:
    total.set(total.get(0) + 1)
    return Count(word.word, total.get(0))


class Later(Executor):
    """Runs what it was given when it is told to."""

    def __init__(self):
        self.waiting = []

    def submit(self, call, /):
        future = Future()
        self.waiting.append((future, call))
        return future

    def go(self):
        while self.waiting:
            future, call = self.waiting.pop(0)
            try:
                future.set_result(call())
            except Exception as error:  # noqa: BLE001 - as an executor does
                future.set_exception(error)


class FailingDelivery(MemoryDelivery):
    """A way to the log that fails when told to."""

    trouble = None
    doubt = False
    closed = False

    def commit(self, offsets):
        if self.trouble:
            raise self.trouble
        return super().commit(offsets)

    @property
    def in_doubt(self):
        return self.doubt

    def close(self):
        self.closed = True
        super().close()


class FailingLog(MemoryServiceLog):
    """A log whose deliveries fail when told to."""

    refusal = None

    def __init__(self, log):
        super().__init__(app.graph, count, log)
        self.deliveries = []

    def deliver(self, _task):
        if self.refusal:
            raise self.refusal
        self.deliveries.append(
            FailingDelivery(self.log, group="demo.count", delivery="exactly_once")
        )
        return self.deliveries[-1]


class Bench:
    """An assignment over a log in memory."""

    def __init__(self, *, stop_timeout=timedelta(seconds=10)):
        self.log = MemoryLog(app.graph.topics(), clock=lambda: NOW_AT)
        self.executor = Later()
        self.below = FailingLog(self.log)
        self.reader = MemoryMember(self.log, [], group="demo.count", listener=Listener())
        self.reader.seek({ZERO: 0, ONE: 0})
        self.assignment = Assignment(
            TaskFactory(app.graph, count, self.below, clock=lambda: NOW_AT),
            settings=ServiceSettings(stop_timeout=stop_timeout),
            executor=self.executor,
        )

    @property
    def deliveries(self):
        return self.below.deliveries

    def running(self, *partitions):
        self.assignment.assigned(dict.fromkeys(partitions, 0))
        self.executor.go()
        self.assignment.settle(self.reader)
        return [self.assignment.running[partition] for partition in partitions]

    def handle(self, partition, *texts):
        start = len(self.log.read(partition))
        for text in texts:
            value = b'{"word":"%s"}' % text.encode()
            self.log.append("words", key=text.encode(), value=value, partition=partition[1])
        self.assignment.running[partition].handle(partition, self.log.read(partition, start))

    def counted(self):
        return sum(len(self.log.read(("counts", number))) for number in (0, 1))


@pytest.fixture
def bench():
    return Bench()


def test_a_task_is_paused_while_it_comes_up_and_read_from_its_offset_then(bench):
    bench.assignment.assigned({ZERO: 7, ONE: 0})
    bench.assignment.settle(bench.reader)
    assert bench.reader.paused == {ZERO, ONE}
    assert bench.assignment.running == {}
    assert len(bench.assignment.takeovers()) == 2
    bench.executor.go()
    bench.assignment.settle(bench.reader)
    assert bench.reader.paused == set()
    assert bench.reader.positions() == {ZERO: 7, ONE: 0}
    assert set(bench.assignment.running) == {ZERO, ONE}
    assert bench.assignment.sought == {ZERO}
    assert bench.assignment.takeovers() == []


def test_a_commit_makes_the_work_of_all_tasks_visible(bench):
    bench.running(ZERO, ONE)
    bench.handle(ZERO, "a", "b")
    bench.handle(ONE, "c")
    bench.assignment.commit()
    assert bench.counted() == 3
    assert bench.log.committed("demo.count") == {ZERO: 2, ONE: 1}


def test_a_revoked_task_is_committed_and_closed_the_others_go_on(bench):
    bench.running(ZERO, ONE)
    bench.handle(ZERO, "a")
    bench.handle(ONE, "b")
    bench.assignment.revoked([ZERO])
    bench.executor.go()
    assert bench.log.committed("demo.count") == {ZERO: 1}
    assert set(bench.assignment.running) == {ONE}
    assert [delivery.closed for delivery in bench.deliveries] == [True, False]
    assert bench.assignment.counts() == Counts(received=2, passed=1, in_flight=1, written=1)


def test_a_lost_task_is_given_up_without_a_commit(bench):
    bench.running(ZERO)
    bench.handle(ZERO, "a")
    bench.assignment.lost([ZERO])
    bench.executor.go()
    assert bench.log.committed("demo.count") == {}
    assert bench.assignment.running == {}
    assert bench.assignment.counts() == Counts()


def test_a_task_may_be_revoked_before_it_has_come_up(bench):
    bench.assignment.assigned({ZERO: 0})
    bench.assignment.revoked([ZERO])
    bench.executor.go()
    bench.assignment.settle(bench.reader)
    assert bench.assignment.running == {}
    assert bench.reader.paused == set()
    assert bench.deliveries == []


def test_a_task_that_has_come_up_when_it_is_revoked_is_closed(bench):
    bench.assignment.assigned({ZERO: 0})
    bench.executor.go()
    bench.assignment.revoked([ZERO])
    bench.assignment.settle(bench.reader)
    assert bench.assignment.running == {}
    assert [delivery.closed for delivery in bench.deliveries] == [True]


def test_a_task_may_come_back_at_once(bench):
    bench.running(ZERO)
    bench.handle(ZERO, "a")
    bench.assignment.revoked([ZERO])
    bench.assignment.assigned({ZERO: 1})
    bench.executor.go()
    bench.assignment.settle(bench.reader)
    assert bench.assignment.running[ZERO].positions == {ZERO: 1}


def test_a_failed_commit_is_done_again_from_the_last_one(bench):
    bench.running(ZERO, ONE)
    bench.handle(ZERO, "a")
    bench.assignment.commit()
    bench.reader.seek({ZERO: 1})
    bench.handle(ZERO, "b", "c")
    bench.handle(ONE, "d")
    bench.reader.seek({ZERO: 3})
    bench.deliveries[0].trouble = TransientError("no answer", code="test")
    bench.assignment.commit()
    assert bench.log.committed("demo.count") == {ZERO: 1, ONE: 1}
    assert set(bench.assignment.running) == {ONE}
    (takeover,) = bench.assignment.takeovers()
    assert takeover.trouble == "no answer"
    bench.executor.go()
    bench.assignment.settle(bench.reader)
    assert bench.deliveries[0].closed
    assert bench.reader.positions()[ZERO] == 1
    assert bench.assignment.running[ZERO].positions == {ZERO: 1}
    assert bench.assignment.counts() == Counts(received=2, passed=2, written=2)


def test_a_commit_in_doubt_is_for_the_group_to_tell(bench):
    bench.running(ZERO)
    bench.handle(ZERO, "a")
    bench.deliveries[0].trouble = TransientError("no answer", code="test")
    bench.deliveries[0].doubt = True
    outcome = bench.assignment.commit()
    assert outcome == Outcome(reached={ZERO: 1}, error=bench.deliveries[0].trouble)


@pytest.mark.parametrize("fenced", [0, 1])
def test_when_one_task_is_another_workers_the_commits_of_the_others_are_finished(bench, fenced):
    bench.running(ZERO, ONE)
    bench.handle(ZERO, "a")
    bench.handle(ONE, "b")
    bench.deliveries[fenced].trouble = FencedError("another has it", code="test")
    outcome = bench.assignment.commit()
    assert isinstance(outcome.error, FencedError)
    assert outcome.committed
    mine = [ZERO, ONE][1 - fenced]
    assert bench.log.committed("demo.count") == {mine: 1}
    assert not bench.assignment.running[mine].dirty
    bench.assignment.revoked([ZERO, ONE])  # as at leaving: nothing is committed twice
    assert bench.counted() == 1


def test_a_task_that_began_again_is_set_back_until_it_commits(bench):
    bench.running(ZERO)
    bench.handle(ZERO, "a")
    bench.deliveries[0].trouble = TransientError("no answer", code="test")
    outcome = bench.assignment.commit()
    assert outcome == Outcome(reached={ZERO: 1})
    bench.executor.go()
    bench.assignment.settle(bench.reader)
    assert bench.assignment.setbacks == {"0": "no answer"}
    bench.assignment.running[ZERO].handle(ZERO, bench.log.read(ZERO))
    assert bench.assignment.commit().committed
    assert bench.assignment.setbacks == {}


def test_a_task_that_began_again_and_has_nothing_to_do_is_not_set_back(bench):
    (task,) = bench.running(ZERO)
    bench.assignment.fail(task, TransientError("no answer", code="test"))
    assert not bench.assignment.forgive(bench.reader)
    bench.executor.go()
    bench.assignment.settle(bench.reader)
    bench.log.append("words", key=b"a", value=b"{}", partition=0)
    assert not bench.assignment.forgive(bench.reader)
    assert bench.assignment.setbacks == {"0": "no answer"}
    bench.assignment.running[ZERO].skip_to(ZERO, 1)
    bench.assignment.running[ZERO].commit()
    assert bench.assignment.forgive(bench.reader)
    assert bench.assignment.setbacks == {}


def test_a_failed_commit_at_leaving_is_left_to_the_next_owner(bench):
    bench.running(ZERO)
    bench.handle(ZERO, "a")
    bench.deliveries[0].trouble = TransientError("no answer", code="test")
    bench.assignment.revoked([ZERO])
    bench.executor.go()
    assert bench.assignment.running == {}
    assert bench.deliveries[0].closed


def test_a_leaving_without_time_commits_nothing():
    bench = Bench(stop_timeout=timedelta())
    bench.running(ZERO)
    bench.handle(ZERO, "a")
    bench.assignment.revoked([ZERO])
    bench.executor.go()
    assert bench.log.committed("demo.count") == {}


def test_a_takeover_that_will_never_succeed_is_raised(bench):
    bench.below.refusal = ConfigurationError("no such topic", code="topic.missing")
    bench.assignment.assigned({ZERO: 0})
    bench.executor.go()
    with pytest.raises(ConfigurationError, match="no such topic"):
        bench.assignment.settle(bench.reader)


def test_leaving_gives_everything_up(bench):
    bench.running(ZERO)
    bench.assignment.assigned({ONE: 0})
    bench.assignment.leave()
    bench.executor.go()
    assert bench.assignment.running == {}
    assert bench.assignment.takeovers() == []
    assert all(delivery.closed for delivery in bench.deliveries)


def test_a_task_is_fenced_before_its_offsets_are_known_and_not_again(bench):
    bench.assignment.fence([ZERO, ONE])
    assert len(bench.deliveries) == 2
    bench.running(ZERO, ONE)
    assert len(bench.deliveries) == 2


def test_fencing_that_fails_is_left_to_the_takeover(bench):
    bench.below.refusal = TransientError("away", code="test")
    bench.assignment.fence([ZERO])
    bench.below.refusal = None
    bench.running(ZERO)
    assert len(bench.deliveries) == 1


def test_what_was_fenced_and_never_taken_over_is_closed(bench):
    bench.assignment.fence([ZERO])
    bench.assignment.leave()
    bench.executor.go()
    assert bench.deliveries[0].closed
