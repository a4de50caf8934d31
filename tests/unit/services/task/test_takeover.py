import itertools
import threading
from datetime import UTC, datetime

import pytest

from penstock import App, record
from penstock.errors import FencedError, TransientError
from penstock.services.task.factory import TaskFactory
from penstock.services.task.takeover import Takeover
from penstock.testing.memorylog import MemoryLog
from penstock.testing.servicelog import MemoryServiceLog

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)
ZERO = ("words", 0)


@record(key="word")
class Word:
    word: str


app = App("demo")
words = app.stream("words", Word)


@app.service(reads=words)
def look(word: Word) -> None: ...


class FailingLog(MemoryServiceLog):
    """A log in memory on which each attempt to make a delivery meets the next error, if any."""

    def __init__(self, *errors):
        super().__init__(app.graph, look, MemoryLog(app.graph.topics(), clock=lambda: NOW_AT))
        self._coming = iter(errors)

    def deliver(self, task):
        if (error := next(self._coming, None)) is not None:
            raise error
        return super().deliver(task)


def factory(*errors):
    return TaskFactory(app.graph, look, FailingLog(*errors), clock=lambda: NOW_AT)


def test_the_task_begins_at_the_offsets_of_the_assignment():
    task = Takeover(factory(), "0", starts={ZERO: 5}).run()
    assert task.positions == task.committed == {ZERO: 5}


def test_what_may_pass_is_tried_again():
    takeover = Takeover(factory(TransientError("away", code="test")), "0", starts={ZERO: 5})
    assert takeover.run().positions == {ZERO: 5}
    assert takeover.trouble == ""


def test_a_task_of_somebody_else_is_not_fought_for():
    takeover = Takeover(factory(FencedError("taken", code="test")), "0", starts={ZERO: 5})
    with pytest.raises(FencedError, match="taken"):
        takeover.run()


def test_a_takeover_that_nobody_wants_any_more_ends():
    away = itertools.repeat(TransientError("away", code="test"))
    takeover = Takeover(factory(*itertools.islice(away, 1000)), "0", starts={ZERO: 5})
    ended = []
    thread = threading.Thread(target=lambda: ended.append(takeover.run()))
    thread.start()
    takeover.cancel()
    thread.join(10)
    assert ended == [None]


def test_progress_is_a_share_of_what_is_expected_and_the_time_left_once_it_is_known():
    takeover = Takeover(factory(), "0", starts={ZERO: 5})
    assert (takeover.restore.progress, takeover.restore.seconds_left) == ("0%", None)
    takeover.restore.follow(0, of=4000, at=100.0)
    takeover.restore.follow(1000, of=4000, at=101.0)
    assert takeover.restore.progress == "25%"
    takeover.restore.follow(2000, of=4000, at=110.0)
    assert takeover.restore.progress == "50%, about 10s left"
    assert (takeover.restore.restored, takeover.restore.expected) == (2000, 4000)
