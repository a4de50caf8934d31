"""Streams that fall silent while nobody reads them: what comes then is the same as without a stop."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock import App, EventTime, record
from penstock.aggregates import count
from penstock.core.rules.check import verified
from penstock.lifecycles import lifecycle
from penstock.patterns import pattern
from penstock.services.step.factory import make_step
from penstock.testing import Driver
from penstock.testing.clock import ManualClock
from penstock.testing.memorylog import MemoryRecord
from penstock.windows import fixed

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@record(key="key", time="at")
class Event:
    key: str
    at: datetime


def joined(left, right):
    return left.join(right, on="key", how="left", before="0s", after="10m").where("right is null")


def followed(left, right):
    return pattern(by="key", within="10m").first("a", left).never("b", right)


def counted(left, _):
    return left.window(fixed("10m"), by="key").aggregate(n=count())


def life(left, right):
    begun = lifecycle("new", "paid").on(left, "new -> paid").stays(left, "paid")
    return begun.stays(right, "new", "paid").after("10m", "paid -> new").rests("new")


def declared(kind):
    app = App("silent")
    times = EventTime(closes_after="1m")
    left, right = (
        app.stream(each, Event, partitions=1, event_time=times) for each in ("left", "right")
    )
    return app, left, right, app.stream("out", kind(left, right), on="services", partitions=1)


@pytest.mark.parametrize("kind", [joined, followed, counted, life])
def test_what_came_while_a_service_was_away_is_not_late_and_tells_what_it_would_have_told(kind):
    def told(*, away):
        app, left, right, out = declared(kind)
        driver = Driver(app, start_at=NOON)

        def pipe(minute, *streams, key="k"):
            driver.advance_clock(NOON + minute * MINUTE - driver.now_at)
            for stream in streams:
                driver.pipe(stream, Event(key, NOON + minute * MINUTE))

        pipe(0, left)
        pipe(0, right, key="other")
        if away:
            driver.crash()
        pipe(3, right)
        pipe(30, left, right, key="l")
        pipe(31, left, key="m")
        pipe(180)
        if away:
            driver.restart()
        driver.advance_clock("1h")
        assert driver.late_records() == []
        return sorted(repr(each) for each in driver.read(out))

    assert told(away=True) == told(away=False) != []


@pytest.mark.parametrize("kind", [joined, followed, counted, life])
def test_the_clock_moves_no_event_time_while_records_wait_to_be_handled(kind):
    app, left, _, _ = declared(kind)
    graph, clock, waiting, given = verified(app.graph), ManualClock(NOON), set(), []
    step = make_step(graph, graph.parts[0], clock=clock, waits=waiting.__contains__)
    step.open(0)

    def send(topic, **_):
        given.append(topic)

    value = b'{"key":"k","at":"2026-05-01T12:00:00Z"}'
    raw = MemoryRecord(("left", 0), 0, key=b"k", value=value, headers=(), written_at=NOON)
    step.run("left", [raw], send)
    del given[:]  # a life cycle has told of its change
    clock.advance("2h")
    waiting.add(left.topic.name)
    assert step.wakes_at() > clock.now_at, "it does not ask again and again"
    assert step.tick(send) is False
    assert given == []
    waiting.clear()
    assert step.wakes_at() <= clock.now_at
    step.tick(send)
    assert given == ["out"]
