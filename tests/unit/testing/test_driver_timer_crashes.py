"""Timers, lists, maps and expiry under random commits and crashes: as if nothing had happened."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock import App, EventTime, State, Timer, Timers, on_error, record, retry, ttl
from penstock.state import ListState, MapState
from penstock.testing import Driver
from penstock.testing.clock import START_AT


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: int


@record(key="device")
class Told:
    device: str
    text: str


app = App("demo")
readings = app.stream("readings", Reading, partitions=2)
told = app.stream("told", Told, partitions=2)


@app.service(reads=readings, writes=told)
class Watch:
    """Everything a service can remember, in one; it fails on a reading of 13."""

    def process(
        self,
        reading: Reading,
        *,
        seen: State[int],
        recent: ListState[int],
        by_value: MapState[int, int],
        fresh: Annotated[State[bool], ttl("1d")],
        timers: Timers,
    ) -> Iterable[Told]:
        seen.set(seen.get(0) + 1)
        recent.append(reading.celsius)
        by_value.set(reading.celsius, by_value.get(reading.celsius, 0) + 1)
        fresh.set(True)
        timers.set("silent", at=reading.at + timedelta(minutes=10), payload=reading.celsius)
        if reading.celsius % 2:
            timers.set(f"odd-{reading.celsius}", after="3m")
        else:
            timers.cancel("odd-1")
        yield Told(reading.device, f"{seen.get()} {recent.get()[-3:]} {by_value.items()}")
        if reading.celsius == 13:
            raise ValueError(reading.celsius)

    def on_timer(
        self, timer: Timer, seen: State[int], recent: ListState[int], timers: Timers
    ) -> Told:
        minute = (timer.due_at - START_AT) // timedelta(minutes=1)
        if timer.name == "silent" and minute % 3 == 0:
            timers.set("again", at=timer.due_at + timedelta(minutes=5))
            recent.clear()
        return Told(timer.key, f"{timer.name} at {minute}, {seen.get()}, payload {timer.payload}")


PIPES = st.tuples(st.sampled_from("abc"), st.integers(0, 60), st.sampled_from([1, 2, 3, 4, 13]))
STEPS = st.lists(PIPES | st.sampled_from(["commit", "crash", "stop"]), max_size=40)


def reading(key, minute, celsius):
    return Reading(key, START_AT + timedelta(minutes=minute), celsius)


def by_key(driver):
    found = {}
    for each in driver.read(told):
        found.setdefault(each.device, []).append(each.text)
    return found


@record(key="device", time="at")
class Payment:
    device: str
    at: datetime


pair = App("pair")
orders = pair.stream("orders", Reading, event_time=EventTime(idle_after="30m"), partitions=1)
payments = pair.stream(
    "payments", Payment, event_time=EventTime(disorder="2m", idle_after="10m"), partitions=1
)
unpaid = pair.stream("unpaid", Told, partitions=1)


@pair.service(reads=(orders, payments), writes=unpaid)
class Dun:
    """What is not paid within five minutes of event time is told."""

    def process(self, event: Reading | Payment, timers: Timers) -> None:
        if isinstance(event, Payment):
            timers.cancel("unpaid")
        else:
            timers.set("unpaid", after="5m")

    def on_timer(self, timer: Timer) -> Told:
        minute = (timer.due_at - START_AT) // timedelta(minutes=1)
        return Told(timer.key, f"unpaid at {minute}")


EVENTS = st.tuples(st.sampled_from(["order", "pay"]), st.sampled_from("ab"), st.integers(0, 40))
MOVES = st.lists(EVENTS | st.sampled_from(["crash", "stop", "1m", "12m"]), max_size=30)


@given(moves=MOVES)
@example(moves=[("order", "a", 0), ("pay", "b", 0), ("order", "b", 30), "crash", ("pay", "a", 20)])
def test_timers_over_several_streams_do_not_depend_on_crashes(moves):
    hurt, calm = Driver(pair), Driver(pair)
    for move in moves:
        if move in {"crash", "stop"}:
            getattr(hurt, move)()
            hurt.restart()
            continue
        for driver in (hurt, calm):
            if isinstance(move, str):
                driver.advance_clock(move)
            else:
                what, key, minute = move
                at = START_AT + timedelta(minutes=minute)
                if what == "order":
                    driver.pipe(orders, Reading(key, at, 1))
                else:
                    driver.pipe(payments, Payment(key, at))
    assert hurt.read(unpaid) == calm.read(unpaid)


def watermark_minutes(driver):
    at = driver.event_times(Dun).watermark
    return None if at is None else (at - START_AT.timestamp()) / 60


def test_a_silent_stream_lets_event_time_go_on_also_while_no_timer_is_set():
    driver = Driver(pair)
    driver.pipe(payments, Payment("a", START_AT + timedelta(minutes=12)))
    driver.advance_clock("29m")
    assert watermark_minutes(driver) is None  # orders may come
    driver.advance_clock("2m")
    assert watermark_minutes(driver) == 10
    driver.crash()
    driver.restart()
    driver.pipe(orders, Reading("a", START_AT, 1))  # behind: the timer goes off at once
    assert [each.text for each in driver.read(unpaid)] == ["unpaid at 5"]


def test_a_crash_does_not_begin_the_silence_of_a_stream_anew():
    driver = Driver(pair)
    driver.advance_clock("20m")
    driver.crash()
    driver.restart()
    driver.advance_clock("11m")
    driver.pipe(payments, Payment("a", START_AT + timedelta(minutes=12)))
    assert watermark_minutes(driver) == 10


@pytest.mark.parametrize("partitions", [1, 2])
@settings(max_examples=settings().max_examples // 2)
@given(steps=STEPS)
def test_what_a_service_tells_does_not_depend_on_crashes(partitions, steps):
    hurt = Driver(app, partitions=partitions, auto_commit=False)
    calm = Driver(app, partitions=partitions)
    for step in steps:
        if step == "commit":
            hurt.commit()
        elif step in {"crash", "stop"}:
            getattr(hurt, step)()
            hurt.restart()
        else:
            hurt.pipe(readings, reading(*step))
            calm.pipe(readings, reading(*step))
    hurt.commit()
    assert by_key(hurt) == by_key(calm)
    assert len(hurt.dead_letters()) == len(calm.dead_letters())
    for name in ("seen", "recent", "by_value", "fresh"):
        for key in "abc":
            assert hurt.state(Watch, key, name=name) == calm.state(Watch, key, name=name)


@pytest.mark.parametrize("awaited", [False, True])
def test_a_timer_that_a_crash_interrupted_goes_off_before_the_next_record_moves_time(awaited):
    late, failures = App("late"), [OSError("away"), OSError("away")]
    events = late.stream("events", Reading, partitions=1)
    fired = late.stream("fired", Told, partitions=1)

    def tell(timer: Timer) -> Told:
        if failures:
            raise failures.pop()
        return Told(timer.key, f"{timer.event_time_at:%H:%M}")

    class Tell:
        def process(self, event: Reading, timers: Timers) -> None:
            timers.set("overdue", at=event.at - timedelta(minutes=1))

        def on_timer(self, timer: Timer) -> Told:
            return tell(timer)

    class TellAwaited:
        async def process(self, event: Reading, timers: Timers) -> None:
            timers.set("overdue", at=event.at - timedelta(minutes=1))

        async def on_timer(self, timer: Timer) -> Told:
            return tell(timer)

    errors = on_error(process=retry(3, first="1m", longest="1m"))
    kind = TellAwaited if awaited else Tell
    late.service(reads=events, writes=fired, name="tell", errors=errors)(kind)
    driver = Driver(late)
    driver.pipe(events, reading("a", 0, 1))  # its timer fails, and waits to be tried again
    driver.crash()
    driver.restart()
    driver.pipe(events, reading("b", 30, 1))  # it fails again
    driver.advance_clock("1m")
    assert [each.text for each in driver.read(fired)] == ["00:00", "00:30"]
