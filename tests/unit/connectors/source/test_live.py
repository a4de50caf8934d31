"""Live sources without a broker: what a feed takes, waits for and gives up."""

import threading
from datetime import timedelta

import pytest

from penstock import App, record
from penstock.connectors import keyboard
from penstock.connectors.connector import Item
from penstock.connectors.progress import Progress
from penstock.connectors.source.live import LogFeed
from penstock.connectors.source.outlet import Outlet
from penstock.errors import TransientError


@record()
class Number:
    value: int


class AwayLog:
    """A producer whose log does not answer the first so many flushes."""

    def __init__(self, *, away: int = 0, code: str = "kafka.undelivered") -> None:
        self.sent: list[bytes | None] = []
        self.flushes = 0
        self.discarded = False
        self._away, self._code = away, code

    def send(self, _topic, *, value, **_) -> None:
        self.sent.append(value)

    def flush(self, _timeout: timedelta) -> None:
        self.flushes += 1
        if self.flushes <= self._away:
            raise TransientError("no answer", code=self._code)

    def discard(self) -> None:
        self.discarded = True


class Fed:
    """A feed over such a log, and its clock, which moves by a second at each look."""

    def __init__(self, log: AwayLog, *, tick: float = 0.0) -> None:
        app = App("shop")
        stream = app.stream("numbers", Number)
        source = app.source("typed", keyboard(), into=stream, parse=number)
        self.progress = Progress("typed", lambda _: None)
        self.stop = threading.Event()
        self._now, self._tick = 0.0, tick
        self.feed = LogFeed(
            Outlet(app.graph, source, log),
            log,
            stop=self.stop,
            stop_timeout=timedelta(seconds=3),
            progress=self.progress,
            clock=self._clock,
        )

    def _clock(self) -> float:
        self._now += self._tick
        return self._now


def number(text: str) -> Number | None:
    return None if text == "-" else Number(int(text))


def test_few_items_are_taken_before_the_log_has_acknowledged_them():
    log = AwayLog()
    fed = Fed(log)
    for _ in range(2_000):
        fed.feed.put(Item(b"1"))
    assert (len(log.sent), log.flushes) == (2_000, 1)


def test_items_are_counted_as_what_became_of_them_once_they_are_settled():
    fed = Fed(AwayLog())
    for content in (b"1", b"-", b"many"):
        fed.feed.put(Item(content))
    assert fed.progress.snapshot().counts.in_flight == 3
    fed.feed.settle()
    counts = fed.progress.snapshot().counts
    assert (counts.passed, counts.filtered, counts.dead_lettered) == (1, 1, 1)
    assert counts.balanced
    assert counts.in_flight == 0


def test_a_log_that_is_away_is_waited_for_while_the_source_runs():
    log = AwayLog(away=50)
    fed = Fed(log, tick=1.0)
    fed.feed.put(Item(b"1"))
    assert log.flushes == 51
    assert fed.progress.snapshot().counts.passed == 1


def test_at_a_stop_it_waits_for_its_time_and_says_how_many_items_are_lost():
    log = AwayLog(away=1_000)
    fed = Fed(log, tick=1.0)
    fed.stop.set()
    with pytest.raises(TransientError, match="up to 1 items that were taken are lost") as caught:
        fed.feed.put(Item(b"1"))
    assert caught.value.code == "source.items-lost"
    assert log.discarded
    assert log.flushes == 4


def test_a_producer_that_failed_as_a_whole_is_not_waited_for():
    fed = Fed(AwayLog(away=1_000, code="producer.dead"), tick=1.0)
    with pytest.raises(TransientError, match="no answer"):
        fed.feed.put(Item(b"1"))
