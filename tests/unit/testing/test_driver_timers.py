"""Classes with timers in the driver: event time, the clock, crashes."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock import App, EventTime, State, Timer, Timers, record
from penstock.core.status.report import Counts
from penstock.errors import DefinitionError, UserCodeError
from penstock.state import Opening
from penstock.testing import Driver
from penstock.testing.clock import START_AT


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float = 20.0


@record(key="device")
class Alarm:
    device: str
    text: str


def at(minutes):
    return START_AT + timedelta(minutes=minutes)


app = App("demo")
readings = app.stream("readings", Reading, partitions=2)
disordered = app.stream("disordered", Reading, event_time=EventTime(disorder="5m"))
alarms = app.stream("alarms", Alarm)


@app.service(reads=readings, writes=alarms)
class Silence:
    """Alarms when a device has been silent for ten minutes of event time."""

    def process(self, reading: Reading, last: State[float], timers: Timers) -> None:
        last.set(reading.celsius)
        timers.set("silent", after="10m", payload={"since": reading.at.isoformat()})

    def on_timer(self, timer: Timer, last: State[float]) -> Alarm:
        return Alarm(timer.key, f"silent at {timer.due_at:%H:%M}, last {last.get()}")


@pytest.fixture
def driver():
    return Driver(app)


def texts(driver):
    return [(alarm.device, alarm.text) for alarm in driver.read(alarms)]


def test_an_event_timer_goes_off_before_the_record_that_is_later(driver):
    driver.pipe(readings, Reading("a", at(0), 1.0))
    driver.pipe(readings, Reading("a", at(9), 2.0))
    assert texts(driver) == []
    driver.pipe(readings, Reading("a", at(25), 3.0))
    assert texts(driver) == [("a", "silent at 00:19, last 2.0")]


def test_event_time_moves_with_every_key_of_the_partition():
    driver = Driver(app, partitions=1)
    driver.pipe(readings, Reading("a", at(0)), Reading("b", at(1)), Reading("c", at(11)))
    assert texts(driver) == [
        ("a", "silent at 00:10, last 20.0"),
        ("b", "silent at 00:11, last 20.0"),
    ]


def test_the_test_moves_event_time(driver):
    driver.pipe(readings, Reading("a", at(0)), Reading("b", at(3)))
    driver.advance_event_time("9m")
    assert texts(driver) == [("a", "silent at 00:10, last 20.0")]
    driver.advance_event_time(at(13))
    assert texts(driver) == [("b", "silent at 00:13, last 20.0")]


def test_timers_and_event_time_survive_a_crash(driver):
    driver.pipe(readings, Reading("a", at(0)))
    driver.crash()
    driver.restart()
    driver.advance_event_time(at(10))
    driver.crash()
    driver.restart()
    assert texts(driver) == [("a", "silent at 00:10, last 20.0")]


def test_what_a_timer_did_and_no_commit_made_durable_is_done_again():
    driver = Driver(app, auto_commit=False)
    driver.pipe(readings, Reading("a", at(0)))
    driver.commit()
    driver.advance_event_time(at(10))
    driver.crash()
    driver.restart()
    assert texts(driver) == []
    driver.advance_event_time(at(10))
    driver.commit()
    driver.commit()
    assert texts(driver) == [("a", "silent at 00:10, last 20.0")]


def test_a_span_counts_from_the_record_and_is_over_when_the_disorder_is():
    local = App("demo")
    stream = local.stream("disordered", Reading, event_time=EventTime(disorder="5m"))
    out = local.stream("alarms", Alarm)
    local.service(reads=stream, writes=out, name="silence")(Silence.function)  # type: ignore[attr-defined]
    driver = Driver(local, partitions=1)
    driver.pipe(stream, Reading("a", at(8)), Reading("b", at(6)))
    driver.advance_event_time(at(20))
    assert driver.read(out) == []
    driver.advance_event_time(at(21))
    assert [alarm.text[:15] for alarm in driver.read(out)] == ["silent at 00:16"]
    driver.advance_event_time(at(23))
    assert [alarm.text[:15] for alarm in driver.read(out)] == ["silent at 00:18"]


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_timer_by_the_clock_sets_itself_again_and_again(partitions):
    local = App("demo")
    stream, out = local.stream("readings", Reading), local.stream("alarms", Alarm)

    @local.service(reads=stream, writes=out)
    class Beat:
        def process(self, _: Reading, timers: Timers) -> None:
            if timers.due_at("beat", time="processing") is None:
                timers.set("beat", after="10m", time="processing")

        def on_timer(self, timer: Timer, beats: State[int], timers: Timers) -> Alarm:
            beats.set(beats.get(0) + 1)
            timers.set("beat", at=timer.due_at + timedelta(minutes=10), time="processing")
            return Alarm(timer.key, f"{beats.get()} at {timer.now_at:%H:%M}")

    driver = Driver(local, partitions=partitions)
    driver.pipe(stream, Reading("a", at(0)))
    driver.advance_clock("35m")
    assert [alarm.text for alarm in driver.read(out)] == ["1 at 00:10", "2 at 00:20", "3 at 00:30"]
    driver.crash()
    driver.restart()
    driver.advance_clock("5m")
    assert [alarm.text for alarm in driver.read(out)] == ["4 at 00:40"]


def test_a_cancelled_timer_does_not_go_off():
    local = App("demo")
    stream, out = local.stream("readings", Reading), local.stream("alarms", Alarm)

    @local.service(reads=stream, writes=out)
    class Watch:
        def process(self, reading: Reading, timers: Timers) -> None:
            if reading.celsius > 30:
                timers.set("hot", after="5m")
            else:
                timers.cancel("hot")

        def on_timer(self, timer: Timer) -> Alarm:
            return Alarm(timer.key, timer.name)

    driver = Driver(local)
    driver.pipe(stream, Reading("a", at(0), 40.0), Reading("b", at(0), 40.0))
    driver.pipe(stream, Reading("a", at(1), 20.0), Reading("a", at(7)), Reading("b", at(7), 31.0))
    assert [alarm.device for alarm in driver.read(out)] == ["b"]


def test_a_timer_the_class_raises_on_is_dead_lettered_and_its_state_taken_back():
    local = App("demo")
    stream = local.stream("readings", Reading)

    @local.service(reads=stream)
    class Broken:
        def process(self, _: Reading, seen: State[int], timers: Timers) -> None:
            seen.set(1)
            timers.set("x", after="1m", payload={"n": 7})

        def on_timer(self, _: Timer, seen: State[int], timers: Timers) -> None:
            seen.set(2)
            timers.set("y", after="1m")
            raise RuntimeError("no")

    driver = Driver(local)
    driver.pipe(stream, Reading("a", at(0)))
    driver.advance_event_time(at(5))
    (letter,) = driver.dead_letters()
    assert letter.reason.startswith("Broken on timer 'x' raised RuntimeError: no (")
    assert letter.key == b"a"
    assert letter.value == (
        b'{"name":"x","time":"event","due_at":"2026-01-01T00:01:00Z","payload":{"n":7}}'
    )
    assert driver.state(Broken, "a") == 1
    assert driver.counts(Broken) == Counts(received=1, passed=1, written=1)


def test_every_partition_has_an_object_of_its_own_opened_and_closed():
    local = App("demo")
    stream = local.stream("readings", Reading, partitions=2)
    log: list[Any] = []

    class Greeter:
        def __init__(self, greeting: str) -> None:
            self.greeting = greeting
            self.handled = 0

        def open(self, opening: Opening) -> None:
            log.append(("open", opening.partition))

        def process(self, reading: Reading) -> None:
            self.handled += 1
            log.append((self.greeting, reading.device, self.handled))

        def close(self) -> None:
            log.append("close")

    service = local.service(reads=stream, name="greeter")(Greeter("hi"))
    driver = Driver(local)
    devices = ["a", "b", "c", "d"]
    driver.pipe(stream, *(Reading(device, at(0)) for device in devices))
    driver.stop(service)
    assert log[:2] == [("open", 0), ("open", 1)]
    assert log[-2:] == ["close", "close"]
    counted = [entry for entry in log if len(entry) == 3]
    assert {device for _, device, _ in counted} == set(devices)
    assert sum(number == 1 for _, _, number in counted) == 2
    driver.restart()
    driver.crash()
    assert log.count("close") == 2, "who is killed closes nothing"


def test_an_object_that_cannot_be_opened_stops_the_service():
    local = App("demo")
    stream = local.stream("readings", Reading)

    @local.service(reads=stream)
    class Shut:
        def open(self, _: Opening) -> None:
            raise OSError("no such database")

        def process(self, reading: Reading) -> None: ...

    with pytest.raises(UserCodeError, match="Shut open raised OSError: no such database"):
        Driver(local)


def test_timers_that_set_each_other_off_for_ever_are_found():
    local = App("demo")
    stream = local.stream("readings", Reading)

    @local.service(reads=stream)
    class Endless:
        def process(self, _: Reading, timers: Timers) -> None:
            timers.set("x", after="0s", time="processing")

        def on_timer(self, timer: Timer, timers: Timers) -> None:
            other = "event" if timer.time == "processing" else "processing"
            timers.set("x", after="0s", time=other)

    driver = Driver(local)
    with pytest.raises(DefinitionError, match="problem") as caught:
        driver.pipe(stream, Reading("a", at(0)))
    assert caught.value.problems[0].code == "driver.endless"


def test_several_outputs_of_a_timer_are_all_written():
    local = App("demo")
    stream, out = local.stream("readings", Reading), local.stream("alarms", Alarm)

    @local.service(reads=stream, writes=out)
    class Many:
        def process(self, reading: Reading, timers: Timers) -> None:
            timers.set("x", at=reading.at + timedelta(minutes=1))

        def on_timer(self, timer: Timer) -> Iterable[Alarm]:
            yield Alarm(timer.key, "one")
            yield Alarm(timer.key, "two")

    driver = Driver(local)
    driver.pipe(stream, Reading("a", at(0)), Reading("a", at(2)))
    assert [alarm.text for alarm in driver.read(out)] == ["one", "two"]


@record(key="order", time="at")
class Order:
    order: str
    at: datetime


@record(key="order", time="at")
class Payment:
    order: str
    at: datetime


class Unpaid:
    """Says which orders were not paid within ten minutes."""

    def process(self, came: Order | Payment, timers: Timers) -> None:
        if isinstance(came, Order):
            timers.set("unpaid", after="10m")
        else:
            timers.cancel("unpaid")

    def on_timer(self, timer: Timer) -> Alarm:
        return Alarm(timer.key, "unpaid")


def shop():
    app = App("shop")
    orders = app.stream("orders", Order)
    payments = app.stream("payments", Payment)
    alarms = app.stream("alarms", Alarm)
    app.service(reads=(orders, payments), writes=alarms)(Unpaid)
    return Driver(app, partitions=1), orders, payments, alarms


def test_a_backlog_of_two_streams_gives_what_the_records_gave_as_they_came():
    ordered = [Order(f"o{number}", at(number)) for number in range(60)]
    paid = [Payment(each.order, each.at + timedelta(minutes=1)) for each in ordered[:-5]]
    driver, orders, payments, alarms = shop()
    mixed: list[Any] = [*ordered, *paid]
    for came in sorted(mixed, key=lambda each: each.at):
        driver.pipe(orders if isinstance(came, Order) else payments, came)
    driver.advance_event_time(at(100))
    live = [alarm.device for alarm in driver.read(alarms)]
    assert live == ["o55", "o56", "o57", "o58", "o59"]

    driver, orders, payments, alarms = shop()
    driver.stop()
    driver.pipe(orders, *ordered)
    driver.pipe(payments, *paid)
    driver.restart()
    driver.advance_event_time(at(100))
    assert [alarm.device for alarm in driver.read(alarms)] == live


def test_a_stream_that_falls_silent_lets_the_timers_of_others_go_off():
    driver, orders, payments, alarms = shop()
    driver.pipe(payments, Payment("o1", at(0)))
    driver.pipe(orders, Order("o2", at(1)), Order("o3", at(30)))
    assert driver.read(alarms) == []
    driver.advance_clock("59s")
    assert driver.read(alarms) == []
    driver.advance_clock("1s")
    assert [alarm.device for alarm in driver.read(alarms)] == ["o2"]


def test_a_service_without_timers_reads_streams_that_are_silent():
    app = App("demo")
    left, right = app.stream("left", Reading), app.stream("right", Reading)
    alarms = app.stream("alarms", Alarm)

    @app.service(reads=(left, right), writes=alarms)
    def tell(reading: Reading) -> Alarm:
        return Alarm(reading.device, "seen")

    driver = Driver(app)
    driver.pipe(left, Reading("a", at(0)))
    driver.advance_clock("5m")
    driver.pipe(left, Reading("a", at(5)))
    assert len(driver.read(alarms)) == 2


@pytest.mark.parametrize("streams", [1, 2])
def test_an_event_time_too_far_ahead_of_the_clock_makes_no_timer_due(streams):
    app = App("demo")
    known = [
        app.stream(name, Reading, partitions=1, event_time=EventTime(idle_after=None, ahead="1h"))
        for name in ("left", "right")[:streams]
    ]
    alarms = app.stream("alarms", Alarm, partitions=1)
    app.service(reads=tuple(known), writes=alarms, name="silence")(Silence.function)  # type: ignore[attr-defined]
    driver = Driver(app)
    for stream in known:
        driver.pipe(stream, Reading("a", at(0)))
    for stream in known:
        driver.pipe(stream, Reading("b", at(61)), Reading("c", at(60 * 24 * 365)))
    assert driver.read(alarms) == []
    driver.crash()
    driver.restart()
    for stream in known:
        driver.pipe(stream, Reading("d", at(59)))
    assert [alarm.device for alarm in driver.read(alarms)] == ["a"]
