"""A service over records of the past gives what it gave when they came."""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated

import pytest

from penstock import (
    App,
    Context,
    EventTime,
    State,
    Timer,
    Timers,
    by_event_time,
    on_error,
    record,
    retry,
    ttl,
)
from penstock.aggregates import count
from penstock.core.status.report import Counts
from penstock.errors import UserCodeError
from penstock.services.replay import Replay, ReplayDelivery
from penstock.state import MapState, Opening
from penstock.testing import Driver
from penstock.testing.clock import START_AT
from penstock.testing.memorylog import MemoryLog
from penstock.windows import fixed


@record(key="key", time="at")
class Sign:
    key: str
    at: datetime
    number: int = 0


@record(key="key")
class Told:
    key: str
    text: str


def after(seconds):
    return START_AT + timedelta(seconds=seconds)


class Past:
    """Streams with records, each written when it happened unless something else is said."""

    def __init__(self):
        self.app = App("demo")
        self.signs = self.app.stream("signs", Sign, partitions=1)
        self.others = self.app.stream("others", Sign, partitions=1)
        self.told = self.app.stream("told", Told, partitions=1)
        self.come = []
        self.waits = []

    def service(self, subject, *, reads=None, **options):
        return self.app.service(
            reads=reads or self.signs, writes=self.told, name="service", **options
        )(subject)

    def write(self, *signs, to=None):
        self.come += [(to or self.signs, sign) for sign in signs]

    def live(self, seconds=0):
        """Return what the service told as the records came, in a driver."""
        driver = Driver(self.app)
        for stream, sign in sorted(self.come, key=lambda each: each[1].at):
            driver.advance_clock(max(timedelta(), sign.at - driver.now_at))
            driver.pipe(stream, sign)
        driver.advance_clock(timedelta(seconds=seconds))
        return driver

    def replay(self, service, *, end_at=None):
        """Return what it tells in a replay, its dead letters, and the counts."""
        now = [START_AT]
        log = MemoryLog(self.app.graph.topics(), clock=lambda: now[0])
        for stream, sign in self.come:
            now[0] = sign.at
            codec = '{"key":"%s","at":"%s","number":%d}'
            value = codec % (sign.key, sign.at.isoformat().replace("+00:00", "Z"), sign.number)
            log.append(stream.topic.name, key=sign.key.encode(), value=value.encode())
        sent = {}

        def send(topic, *, key, value, headers=(), partition=None):
            sent.setdefault(topic, []).append(value)

        names = {spec.name: f"{spec.name}.again" for spec in self.app.graph.topics()}
        names.pop("demo.service.changelog", None)
        inputs = {
            partition: log.read(partition)
            for data in service.reads
            for partition in log.partitions(data.topic.name)
        }
        delivery = ReplayDelivery(send, names=names)
        replay = Replay(self.app.graph, service, inputs, delivery=delivery, wait=self.waits.append)
        counts = replay.run(end_at=end_at)
        assert set(sent) <= {f"{name}.again" for name in names}
        self.sent = sent
        return counts

    def texts(self):
        return [value.decode().split('"')[7] for value in self.sent.get("told.again", [])]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_record_that_fails_for_a_moment_is_tried_again_after_a_wait(kind):
    past, fails = Past(), [1, 1]

    def echo(sign: Sign) -> Told:
        if sign.number == 2 and fails:
            fails.pop()
            raise OSError("away for a moment")
        return Told(sign.key, str(sign.number))

    async def slow_echo(sign: Sign) -> Told:
        await asyncio.sleep(0)
        return echo(sign)

    policy = on_error(process=retry(3, first="2s"))
    service = past.service(echo if kind == "plain" else slow_echo, errors=policy)
    past.write(*(Sign("a", after(n), n) for n in range(5)))
    assert past.replay(service) == Counts(received=5, passed=5, written=5)
    assert past.texts() == ["0", "1", "2", "3", "4"]
    assert past.waits == [2.0, 4.0]


def test_a_record_that_fails_for_good_is_a_dead_letter_of_the_replay_or_ends_it():
    for then in ("dead_letter", "stop"):
        past = Past()

        def fail(sign: Sign) -> Told:
            raise OSError(sign.number)

        policy = on_error(process=retry(1, first="2s", then=then))
        service = past.service(fail, errors=policy)
        past.write(Sign("a", after(0)))
        if then == "stop":
            with pytest.raises(UserCodeError, match="OSError: 0"):
                past.replay(service)
        else:
            assert past.replay(service) == Counts(received=1, dead_lettered=1)
            assert len(past.sent["demo.dead-letters.again"]) == 1


def test_an_object_is_opened_and_closed():
    past, calls = Past(), []

    class Echo:
        def open(self, opening: Opening) -> None:
            calls.append(("open", opening.partition))

        async def process(self, sign: Sign) -> Told:
            return Told(sign.key, str(sign.number))

        async def close(self) -> None:
            calls.append("close")

    service = past.service(Echo)
    past.write(Sign("a", after(0)))
    past.replay(service)
    assert calls == [("open", 0), "close"]
    assert past.texts() == ["0"]


class Watch:
    """Timers of both times, a time to live, a map, and what the clock says."""

    def process(
        self,
        sign: Sign,
        *,
        seen: Annotated[State[int], ttl("30s")],
        by_number: MapState[int, int],
        timers: Timers,
        context: Context,
    ) -> Told:
        seen.set(seen.get(0) + 1)
        by_number.set(sign.number, by_number.get(sign.number, 0) + 1)
        timers.set("silent", after="10s")
        timers.set("remind", after="20s", time="processing")
        at = round((context.now_at - START_AT).total_seconds())
        return Told(sign.key, f"{sign.key} {seen.get()} {sorted(by_number.items())} at {at}")

    def on_timer(self, timer: Timer) -> Iterable[Told]:
        at = timer.now_at if timer.time == "processing" else timer.due_at
        yield Told(timer.key, f"{timer.key} {timer.name} {(at - START_AT).total_seconds():g}")


class SlowWatch:
    """The same, awaited."""

    async def process(
        self,
        sign: Sign,
        *,
        seen: Annotated[State[int], ttl("30s")],
        by_number: MapState[int, int],
        timers: Timers,
        context: Context,
    ) -> Told:
        await asyncio.sleep(0)
        return Watch().process(sign, seen=seen, by_number=by_number, timers=timers, context=context)

    async def on_timer(self, timer: Timer) -> Iterable[Told]:
        return list(Watch().on_timer(timer))


@pytest.mark.parametrize("subject", [Watch, SlowWatch])
@pytest.mark.parametrize("streams", [1, 2])
def test_timers_state_and_expiry_are_as_they_were_when_the_records_came(subject, streams):
    past = Past()
    reads = (past.signs, past.others)[:streams]
    service = past.service(subject, reads=reads)
    seconds = [0, 5, 12, 14, 40, 43, 90, 95, 130, 133, 260, 275]
    for number, second in enumerate(seconds):
        to = past.others if streams == 2 and number % 3 == 2 else past.signs
        past.write(Sign("abc"[number % 2], after(second), number % 4), to=to)
    driver = past.live(seconds=100)
    counts = past.replay(service, end_at=driver.now_at)
    assert past.texts() == [found.text for found in driver.read(past.told)]
    assert counts == driver.counts(service)
    assert past.waits == []


def test_windows_give_their_panes_and_late_records():
    past = Past()
    windows = past.signs.window(fixed("1m"), by="key").aggregate(n=count())
    panes = past.app.stream("panes", windows, on="services", partitions=1)
    service = past.app.graph.part("panes.windows")
    past.write(*(Sign("a", after(second)) for second in (0, 30, 61, 130, 20, 300)))
    counts = past.replay(service)
    driver = Driver(past.app)
    for _, sign in past.come:
        driver.pipe(past.signs, sign)
    told = [raw.value() for raw in driver.read_raw(panes)]
    assert len(told) >= 3
    assert past.sent["panes.again"] == told
    assert len(past.sent["demo.late.again"]) == len(driver.late_records()) == 1
    assert counts.received == 6


def test_a_silent_stream_holds_event_time_back_again_with_the_records_it_has_in_hand():
    app, sent = App("demo"), []
    signs, others = (
        app.stream(name, Sign, partitions=1, event_time=EventTime(idle_after="1m"))
        for name in ("signs", "others")
    )
    told = app.stream("told", Told, partitions=1)

    @app.service(reads=(signs, others), writes=told, name="service")
    class Follow:
        def process(self, sign: Sign, timers: Timers) -> None:
            timers.set("end", at=sign.at + timedelta(seconds=5))

        def on_timer(self, timer: Timer) -> Told:
            return Told(timer.key, f"{timer.event_time_at - START_AT}")

    log = MemoryLog(app.graph.topics(), clock=lambda: START_AT)
    for stream, key, seconds, written in (
        ("signs", "a", 0, 0),
        ("others", "b", 10, 90),
        ("others", "c", 300, 90),
        ("signs", "d", 200, 90),
    ):
        at = after(seconds).isoformat().replace("+00:00", "Z")
        value = f'{{"key":"{key}","at":"{at}"}}'.encode()
        log.append(stream, key=key.encode(), value=value, written_at=after(written))
    Replay(
        app.graph,
        app.graph.part("service"),
        {(name, 0): log.read((name, 0)) for name in ("signs", "others")},
        delivery=ReplayDelivery(lambda _, **each: sent.append(each["value"]), names={"told": "t"}),
        wait=lambda _: None,
    ).run()
    assert sent == [b'{"key":"%s","text":"0:03:20"}' % key for key in (b"a", b"b")]


def test_an_operator_replayed_gives_what_it_gave():
    past = Past()
    once = past.app.stream("once", past.signs.deduplicate(by="number", within="1h"), on="services")
    past.write(*[Sign("a", START_AT + timedelta(seconds=n), n % 3) for n in range(6)])
    counts = past.replay(past.app.graph.part("once.filling"))
    assert (counts.received, counts.passed, counts.filtered) == (6, 3, 3)
    driver = past.live()
    assert past.sent["once.again"] == [raw.value() for raw in driver.read_raw(once)]


def test_inputs_in_the_order_of_event_time_wait_for_each_other_and_nothing_is_left():
    past = Past()
    more = past.app.stream("more", Sign)

    @past.app.service(reads=by_event_time(past.signs, more, waits="10s"), writes=past.told)
    def echo(sign: Sign) -> Told:
        return Told(sign.key, str(sign.number))

    past.write(*[Sign("a", START_AT + timedelta(seconds=n), n) for n in (0, 2, 4)])
    past.write(*[Sign("a", START_AT + timedelta(seconds=n), n) for n in (1, 3, 50)], to=more)
    counts = past.replay(echo)
    assert counts.received == 6
    assert past.texts() == ["0", "1", "2", "3", "4", "50"]
