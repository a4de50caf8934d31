"""Broadcast tables in the driver: whole before the first record, and kept current."""

from datetime import UTC, datetime

import pytest

from penstock import App, State, record
from penstock.core.rules.check import check
from penstock.tables import Rows, broadcast
from penstock.testing import Driver

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float


@record(key="kind")
class Limit:
    kind: str
    celsius: float


@record(key=("site", "floor"))
class Room:
    site: str
    floor: int
    name: str


@record(key="device")
class Alarm:
    device: str
    text: str


@pytest.fixture
def app():
    return App("plant")


@pytest.fixture
def readings(app):
    return app.stream("readings", Reading, partitions=4)


@pytest.fixture
def alarms(app):
    return app.stream("alarms", Alarm)


def texts(driver, alarms):
    return [alarm.text for alarm in driver.read(alarms)]


def reading(celsius, device="a"):
    return Reading(device, T0, celsius)


def test_rows_are_there_before_the_first_record_and_change_and_go(app, readings, alarms):
    limits = app.table("limits", Limit, partitions=3)

    @app.service(reads=(readings, broadcast(limits)), writes=alarms)
    def watch(reading: Reading, limits: Rows[Limit]) -> Alarm | None:
        limit = limits.get("heat")
        if limit is None or reading.celsius > limit.celsius:
            return Alarm(reading.device, "no limit" if limit is None else f"above {limit.celsius}")
        return None

    driver = Driver(app, auto_commit=False)
    driver.pipe(limits, Limit("heat", 60.0), Limit("cold", -5.0))
    driver.pipe(readings, reading(70.0), reading(50.0))
    driver.pipe(limits, Limit("heat", 40.0))
    driver.crash()
    driver.restart()
    driver.commit()
    # After the crash all is handled again, with the rows as they are now.
    assert texts(driver, alarms) == ["above 40.0", "above 40.0"]
    driver.delete(limits, "heat")
    driver.pipe(readings, reading(1.0))
    driver.commit()
    assert texts(driver, alarms) == ["no limit"]


def test_rows_read_like_a_mapping_of_keys(app, readings, alarms):
    rooms = app.table("rooms", Room)

    @app.service(reads=(readings, broadcast(rooms)), writes=alarms)
    class Watch:
        def process(self, reading: Reading, seen: State[int], rooms: Rows[Room]) -> Alarm:
            seen.set(seen.get(0) + 1)
            with pytest.raises(KeyError):
                rooms["north", 3]
            with pytest.raises(TypeError, match="is not a key of Room"):
                rooms.get("north")
            names = sorted(room.name for room in rooms)
            facts = (
                len(rooms),
                ("north", 2) in rooms,
                rooms["north", 1].name,
                rooms.get(("x", 1), 0),
            )
            return Alarm(reading.device, f"{seen.get()} {names} {facts}")

    driver = Driver(app)
    driver.pipe(rooms, Room("north", 1, "hall"), Room("north", 2, "loft"))
    driver.pipe(readings, reading(1.0), reading(2.0))
    assert texts(driver, alarms) == [
        "1 ['hall', 'loft'] (2, True, 'hall', 0)",
        "2 ['hall', 'loft'] (2, True, 'hall', 0)",
    ]


def test_a_row_that_does_not_decode_is_left_out(app, readings, alarms, caplog):
    limits = app.table("limits", Limit)

    @app.service(reads=(readings, broadcast(limits)), writes=alarms)
    def watch(reading: Reading, limits: Rows[Limit]) -> Alarm:
        return Alarm(reading.device, str(len(limits)))

    driver = Driver(app)
    driver.pipe(limits, Limit("heat", 60.0))
    driver.pipe_raw(limits, b"cold", b'{"kind": "cold"}')
    driver.pipe(readings, reading(1.0))
    assert texts(driver, alarms) == ["1"]
    assert "is left out" in caplog.text


def test_an_async_service_gets_rows_too(app, readings, alarms):
    limits = app.table("limits", Limit)

    @app.service(reads=(readings, broadcast(limits)), writes=alarms)
    async def watch(reading: Reading, limits: Rows[Limit]) -> Alarm:
        return Alarm(reading.device, str(limits["heat"].celsius))

    driver = Driver(app)
    driver.pipe(limits, Limit("heat", 60.0))
    driver.pipe(readings, reading(1.0))
    assert texts(driver, alarms) == ["60.0"]


def test_of_several_tables_of_one_type_the_parameter_has_the_name_of_its_table(
    app, readings, alarms
):
    high, low = app.table("high", Limit), app.table("low", Limit)

    @app.service(reads=(readings, broadcast(high), broadcast(low)), writes=alarms)
    def watch(reading: Reading, low: Rows[Limit], high: Rows[Limit]) -> Alarm:
        return Alarm(reading.device, f"{low['heat'].celsius} to {high['heat'].celsius}")

    driver = Driver(app)
    driver.pipe(high, Limit("heat", 60.0))
    driver.pipe(low, Limit("heat", 1.0))
    driver.pipe(readings, reading(1.0))
    assert texts(driver, alarms) == ["1.0 to 60.0"]


def test_what_is_wrong_with_broadcast_tables_is_said(app, readings, alarms):
    limits = app.table("limits", Limit)

    @app.service(reads=(readings, broadcast(limits)))
    def unused(reading: Reading) -> None: ...

    @app.service(reads=readings)
    def untold(reading: Reading, limits: Rows[Limit]) -> None: ...

    @app.service(reads=(readings, broadcast(alarms)))
    def no_table(reading: Reading, alarms: Rows[Alarm]) -> None: ...

    @app.service(reads=broadcast(limits))
    def nothing_else(reading: Reading, limits: Rows[Limit]) -> None: ...

    problems = check(app.graph)
    assert [(problem.code, problem.message.split("'")[1]) for problem in problems] == [
        ("service.broadcast", "unused"),
        ("service.broadcast", "untold"),
        ("service.broadcast", "no_table"),
        ("service.broadcast", "nothing_else"),
    ]
    assert "limits: Rows[Limit]" in problems[0].hint
