import itertools
import threading
from datetime import UTC, datetime

import pytest

from penstock import App, record
from penstock.errors import FencedError, TransientError
from penstock.services.worker.takeover import (
    Takeover,
    TaskFactory,
)
from penstock.services.worker.task import Task
from penstock.testing.memorylog import MemoryDelivery, MemoryLog

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
ZERO = ("words", 0)


@record(key="word")
class Word:
    word: str


app = App("demo")
words = app.stream("words", Word)


@app.service(reads=words)
def look(word: Word) -> None: ...


def ground(*outcomes):
    """Stand on a log in memory; each attempt gives the next outcome, an error or a delivery."""
    log = MemoryLog(app.graph.topics(), clock=lambda: NOW_AT)
    coming = iter(outcomes)

    def deliver(share):
        outcome = next(coming, None)
        if outcome is not None:
            raise outcome
        return MemoryDelivery(log, group="demo.look", delivery="exactly_once")

    def make_task(starts, delivery):
        return Task(
            app.graph, look, number=0, starts=starts, delivery=delivery, clock=lambda: NOW_AT
        )

    return TaskFactory(connection=None, changelog=None, deliver=deliver, make_task=make_task)


def test_the_task_begins_at_the_offsets_of_the_assignment():
    task = Takeover(ground(), "0", starts={ZERO: 5}).run()
    assert task.positions == task.committed == {ZERO: 5}


def test_what_may_pass_is_tried_again():
    takeover = Takeover(ground(TransientError("away", code="test")), "0", starts={ZERO: 5})
    assert takeover.run().positions == {ZERO: 5}
    assert takeover.trouble == ""


def test_a_share_of_somebody_else_is_not_fought_for():
    takeover = Takeover(ground(FencedError("taken", code="test")), "0", starts={ZERO: 5})
    with pytest.raises(FencedError, match="taken"):
        takeover.run()


def test_a_takeover_that_nobody_wants_any_more_ends():
    away = itertools.repeat(TransientError("away", code="test"))
    takeover = Takeover(ground(*itertools.islice(away, 1000)), "0", starts={ZERO: 5})
    ended = []
    thread = threading.Thread(target=lambda: ended.append(takeover.run()))
    thread.start()
    takeover.cancel()
    thread.join(10)
    assert ended == [None]


def test_progress_is_a_share_of_what_is_expected_and_the_time_left_once_it_is_known():
    takeover = Takeover(ground(), "0", starts={ZERO: 5})
    assert (takeover.progress, takeover.seconds_left) == ("0%", None)
    takeover.follow(0, of=4000, at=100.0)
    takeover.follow(1000, of=4000, at=101.0)
    assert takeover.progress == "25%"
    takeover.follow(2000, of=4000, at=110.0)
    assert takeover.progress == "50%, about 10s left"
    assert (takeover.restored, takeover.expected) == (2000, 4000)
