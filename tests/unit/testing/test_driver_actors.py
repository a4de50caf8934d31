"""Actors in the driver: one object for each key, in memory while it is in use."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, Context, Output, Timer, Timers, on_error, record, retry, send
from penstock.state import MapState
from penstock.testing import Driver

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float


@record(key="device")
class Ack:
    device: str
    command: int


@record(key="device")
class Command:
    device: str
    number: int
    text: str


@record(key="device")
class Alarm:
    device: str
    text: str


class Boiler:
    """Stops what is too hot, and tells when nobody obeys."""

    made: ClassVar[list["Boiler"]] = []
    hottest: float = 0.0
    sent: int = 0
    open: list[int] = []  # noqa: RUF012 - every actor gets its own
    last_at: datetime | None = None

    def __init__(self):
        self.made.append(self)

    def receive(self, reading: Reading, timers: Timers) -> Command | None:
        self.hottest = max(self.hottest, reading.celsius)
        self.last_at = reading.at
        if reading.celsius == 666:
            self.hottest = -1
            raise ValueError("no such heat")
        if reading.celsius <= 80:
            return None
        self.sent += 1
        self.open.append(self.sent)
        timers.set(f"{self.sent}", after="1m")
        return Command(reading.device, self.sent, "stop")

    def receive_ack(self, ack: Ack, *, timers: Timers, context: Context) -> None:
        assert context.key == ack.device.encode()
        if ack.command in self.open:
            self.open.remove(ack.command)
            timers.cancel(f"{ack.command}")

    def on_timer(self, timer: Timer) -> Iterable[Alarm]:
        self.open.remove(int(timer.name))
        yield Alarm(timer.key, f"{timer.name} of {self.sent} without an answer")


@dataclass
class Plant:
    definition: type = Boiler
    options: dict = field(default_factory=dict)
    driver_options: dict = field(default_factory=dict)

    def __post_init__(self):
        self.app = App("plant")
        self.readings = self.app.stream("readings", Reading)
        self.acks = self.app.stream("acks", Ack)
        self.commands = self.app.stream("commands", Command)
        self.alarms = self.app.stream("alarms", Alarm)
        self.actor = self.app.actor(
            reads=(self.readings, self.acks), writes=(self.commands, self.alarms), **self.options
        )(self.definition)
        Boiler.made.clear()
        self.driver = Driver(self.app, **self.driver_options)

    def heat(self, device, *values, seconds=0):
        at = NOON + timedelta(seconds=seconds)
        self.driver.pipe(self.readings, *(Reading(device, at, value) for value in values))


def test_each_key_has_an_actor_that_receives_from_several_streams():
    plant = Plant()
    plant.heat("a", 90.0)
    plant.heat("b", 95.0)
    plant.heat("a", 91.0)
    plant.driver.pipe(plant.acks, Ack("a", 1))
    told = {(each.device, each.number) for each in plant.driver.read(plant.commands)}
    assert told == {("a", 1), ("b", 1), ("a", 2)}
    a = plant.driver.state(plant.actor, "a")
    assert (a.hottest, a.sent, a.open) == (91.0, 2, [2])
    assert plant.driver.state(plant.actor, "b").open == [1]
    assert len(Boiler.made) == 2


def test_what_nobody_answers_is_told_when_its_timer_goes_off():
    plant = Plant()
    plant.heat("a", 90.0)
    plant.driver.advance_event_time(NOON + timedelta(minutes=1))
    assert plant.driver.read(plant.alarms) == [Alarm("a", "1 of 1 without an answer")]
    assert plant.driver.state(plant.actor, "a").open == []


def test_a_failed_call_leaves_the_actor_as_it_was():
    plant = Plant()
    plant.heat("a", 70.0, 666.0, 71.0)
    assert plant.driver.state(plant.actor, "a").hottest == 71.0
    assert len(plant.driver.dead_letters()) == 1


def test_an_actor_that_could_not_be_kept_fails_with_the_field_it_is_about():
    class Wrong:
        seen: int = 0

        def receive(self, reading: Reading) -> None:
            self.seen = f"{reading.celsius}"

    app = App("plant")
    readings = app.stream("readings", Reading)
    actor = app.actor(reads=readings)(Wrong)
    driver = Driver(app)
    driver.pipe(readings, Reading("a", NOON, 1.0))
    assert "`$.seen`" in driver.dead_letters()[0].reason
    assert driver.state(actor, "a") is None


def test_idle_actors_leave_memory_and_are_waked_with_what_they_were():
    plant = Plant(options={"idle_after": "5m"})
    plant.heat("a", 90.0)
    plant.heat("b", 50.0)
    assert facts(plant) == (2, 2, 0, 0)
    plant.driver.advance_clock("4m")
    plant.heat("b", 51.0)
    plant.driver.advance_clock("3m")
    plant.heat("b", 52.0)
    assert facts(plant) == (2, 2, 0, 0)
    plant.driver.advance_clock("4m")
    assert facts(plant) == (1, 2, 0, 1)
    plant.driver.advance_clock("1h")
    assert facts(plant) == (0, 2, 0, 2)
    plant.heat("a", 70.0)
    assert facts(plant) == (1, 2, 1, 2)
    assert plant.driver.state(plant.actor, "a").hottest == 90.0
    assert len(Boiler.made) == 3


def facts(plant):
    found = plant.driver.facts(plant.actor)
    return tuple(
        found[f"actors {each}"] for each in ("in memory", "started", "waked", "passivated")
    )


def test_no_more_actors_than_the_limit_are_awake(monkeypatch):
    monkeypatch.setattr("penstock.services.step.actors.MOST_AWAKE", 10)
    plant = Plant(driver_options={"partitions": 1})
    for number in range(100):
        plant.heat(f"device-{number}", 50.0)
    in_memory, started, _, passivated = facts(plant)
    assert in_memory <= 20
    assert started == in_memory + passivated == 100


def test_actors_with_their_first_values_take_no_state():
    class Count:
        total: int = 0

        def receive(self, ack: Ack) -> None:
            self.total += ack.command

    app = App("plant")
    acks = app.stream("acks", Ack)
    actor = app.actor(reads=acks)(Count)
    driver = Driver(app)
    driver.pipe(acks, Ack("a", 1), Ack("b", 2))
    assert driver.facts(actor)["keys"] == 2
    driver.pipe(acks, Ack("a", -1))
    assert driver.facts(actor)["keys"] == 1
    assert driver.state(actor, "a") is None


class Slow(Boiler):
    async def receive(self, reading: Reading, timers: Timers) -> Command | None:
        await asyncio.sleep(0)
        return super().receive(reading, timers)

    async def receive_ack(self, ack: Ack, *, timers: Timers, context: Context) -> None:
        await asyncio.sleep(0)
        super().receive_ack(ack, timers=timers, context=context)

    async def on_timer(self, timer: Timer) -> list[Alarm]:
        await asyncio.sleep(0)
        return list(super().on_timer(timer))


MOVES = st.lists(
    st.one_of(
        st.tuples(
            st.just("heat"), st.sampled_from("abc"), st.sampled_from([50.0, 85.0, 99.0, 666.0])
        ),
        st.tuples(st.just("ack"), st.sampled_from("abc"), st.integers(1, 4)),
        st.tuples(st.just("time"), st.integers(1, 90), st.just(0)),
        st.tuples(st.just("clock"), st.integers(1, 9), st.just(0)),
        st.tuples(st.just("crash"), st.just(0), st.just(0)),
        st.tuples(st.just("commit"), st.just(0), st.just(0)),
    ),
    max_size=30,
)


@pytest.mark.parametrize("definition", [Boiler, Slow])
@settings(max_examples=settings().max_examples // 3)
@given(moves=MOVES)
def test_what_actors_tell_does_not_depend_on_crashes_and_passivation(definition, moves):
    calm = played(Plant(definition, {"idle_after": "10000h"}), moves, crashes=False)
    hurt = played(
        Plant(definition, {"idle_after": "1m"}, {"auto_commit": False}), moves, crashes=True
    )
    assert calm == hurt


def played(plant, moves, *, crashes):
    seconds, driver = 0, plant.driver
    for what, who, value in moves:
        if what not in ("heat", "crash"):
            driver.commit()  # of what is not committed, a crash mixes the streams anew
        if what == "heat":
            plant.heat(who, value, seconds=seconds)
        elif what == "ack":
            driver.pipe(plant.acks, Ack(who, value))
            driver.commit()
        elif what == "time":
            seconds += who
            driver.advance_event_time(NOON + timedelta(seconds=seconds))
            driver.commit()
        elif what == "clock":
            driver.advance_clock(timedelta(minutes=who))
        elif what == "crash" and crashes:
            driver.crash()
            driver.restart()
    driver.commit()
    told = sorted(driver.read(plant.commands), key=lambda each: (each.device, each.number))
    alarms = sorted(driver.read(plant.alarms), key=lambda each: (each.device, each.text))
    letters = sorted((each.key, each.reason) for each in driver.dead_letters())
    return told, alarms, letters, [driver.state(plant.actor, each) for each in "abc"]


def test_a_message_that_is_tried_again_finds_the_actor_as_it_was():
    class Flaky:
        tries: ClassVar[list[int]] = []
        seen: int = 0

        def receive(self, _: Ack) -> None:
            self.seen += 1
            self.tries.append(self.seen)
            if len(self.tries) < 3:
                raise OSError("away")

    app = App("plant")
    acks = app.stream("acks", Ack)
    actor = app.actor(reads=acks, errors=on_error(process=retry(5, first="1s")))(Flaky)
    driver = Driver(app)
    driver.pipe(acks, Ack("a", 1))
    driver.advance_clock("1m")
    assert (Flaky.tries, driver.state(actor, "a").seen) == ([1, 1, 1], 1)


def test_an_actor_may_have_states_besides_its_fields_and_address_what_it_gives():
    class Ledger:
        total: int = 0

        def receive(self, ack: Ack, by_command: MapState[int, int]) -> Iterable[Output[Alarm]]:
            by_command[ack.command] = by_command.get(ack.command, 0) + 1
            self.total += 1
            yield send(alarms, Alarm(ack.device, f"{self.total} {dict(by_command.items())}"))

    app = App("plant")
    acks, alarms = app.stream("acks", Ack), app.stream("alarms", Alarm)
    actor = app.actor(reads=acks, writes=alarms)(Ledger)
    driver = Driver(app)
    driver.pipe(acks, Ack("a", 1), Ack("a", 2))
    assert driver.read(alarms)[-1].text == "2 {1: 1, 2: 1}"
    assert driver.state(actor, "a", name="by_command") == {1: 1, 2: 1}
    assert driver.state(actor, "a").total == 2
