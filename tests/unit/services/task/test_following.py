"""Broadcast tables of a worker: read whole first, then followed, in spite of trouble."""

import threading
from datetime import UTC, datetime

import pytest

from penstock import App, record
from penstock.errors import ConfigurationError, TransientError
from penstock.services.state.wholetables import whole_tables
from penstock.services.task import following as module
from penstock.services.task.following import Following
from penstock.tables import Rows, broadcast
from penstock.testing.memorylog import MemoryLog
from penstock.testing.servicelog import MemoryServiceLog

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@record(key="kind")
class Limit:
    kind: str
    celsius: float


app = App("plant")
limits = app.table("limits", Limit)
readings = app.stream("readings", Limit)


@app.service(reads=(readings, broadcast(limits)))
def watch(reading: Limit, limits: Rows[Limit]) -> None: ...


class Log(MemoryServiceLog):
    """Fails for as long as it is told to."""

    def __init__(self):
        super().__init__(app.graph, watch, MemoryLog(app.graph.topics(), clock=lambda: NOON))
        self.trouble = None

    def ends(self, topic, *, committed=False):
        if self.trouble is not None:
            raise self.trouble
        return super().ends(topic, committed=committed)

    def write(self, kind, celsius):
        value = b'{"kind":"%s","celsius":%d}' % (kind.encode(), celsius)
        self.log.append("limits", key=kind.encode(), value=value)


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def following(log, monkeypatch):
    monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.01)
    made = Following(log, whole_tables(watch))
    yield made
    made.close()


def eventually(condition):
    deadline = threading.Event()
    for _ in range(2000):
        if condition():
            return
        deadline.wait(0.01)
    raise AssertionError("waited in vain")


def test_rows_are_whole_before_anything_begins_and_followed_afterwards(log, following):
    for number in range(100):
        log.write(f"k{number}", number)
    assert following.reading() == {"limits": "not read yet"}
    following.start()
    assert following.wait(threading.Event())
    table = following.tables["limits"]
    assert len(table) == 100
    assert following.reading() == {}
    log.write("k7", 1000)
    eventually(lambda: table.get(b"k7").celsius == 1000)


def test_trouble_is_told_and_waited_for_and_whoever_waits_may_give_up(log, following):
    log.trouble = TransientError("the broker is away", code="kafka.away")
    log.write("heat", 60)
    following.start()
    eventually(following.troubles)
    assert following.reading() == {"limits": "not read yet, the broker is away"}
    assert following.troubles() == {"limits": "the broker is away"}
    stop = threading.Event()
    stop.set()
    assert not following.wait(stop)
    log.trouble = None
    assert following.wait(threading.Event())
    assert (following.troubles(), len(following.tables["limits"])) == ({}, 1)


def test_a_topic_that_is_another_one_is_read_anew(log, following):
    log.write("heat", 60)
    log.trouble = ConfigurationError("limits begins later", code="offset.trimmed")
    following.tables["limits"]._rows = {b"old": Limit("old", 1.0)}
    following.start()
    eventually(following.troubles)
    log.trouble = None
    assert following.wait(threading.Event())
    assert [row.kind for row in following.tables["limits"].values()] == ["heat"]
