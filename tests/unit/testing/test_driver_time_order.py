"""A service that reads several streams in the order of event time."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock import App, by_event_time, on_error, record, retry
from penstock.core.rules.check import check
from penstock.testing import Driver

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    name: str


@record(key="device")
class Told:
    device: str
    name: str


def reading(name, minute):
    return Reading("a", T0 + timedelta(minutes=minute), name)


def declared(app, **options):
    one, two = app.stream("one", Reading), app.stream("two", Reading)
    told = app.stream("told", Told, partitions=1)
    options = {"waits": "0s"} | options
    bad = set()

    @app.service(
        reads=by_event_time(one, two, waits=options["waits"]),
        writes=told,
        errors=on_error(process=retry(5, first="1s")),
    )
    def tell(reading: Reading) -> Told:
        if reading.name in bad:
            raise ValueError("not now")
        return Told(reading.device, reading.name)

    return one, two, told, tell, bad


def names(driver, told):
    return [each.name for each in driver.read(told)]


def test_backlogs_are_handled_as_they_happened():
    app = App("plant")
    one, two, told, _, _ = declared(app)
    driver = Driver(app)
    driver.stop()
    driver.pipe(one, *[reading(f"a{minute}", minute) for minute in (1, 2, 7, 8)])
    driver.pipe(two, *[reading(f"b{minute}", minute) for minute in (0, 3, 7, 9)])
    driver.pipe_raw(one, b"a", b"{}")
    driver.restart()
    assert names(driver, told) == ["b0", "a1", "a2", "b3", "a7", "b7", "a8", "b9"]
    assert len(driver.dead_letters()) == 1


def test_a_stream_without_records_is_waited_for_by_the_clock():
    app = App("plant")
    one, two, told, tell, _ = declared(app, waits="10s")
    driver = Driver(app)
    driver.pipe(one, reading("a5", 5))
    assert names(driver, told) == []
    assert driver.counts(tell).received == 0
    driver.pipe(two, reading("b3", 3))
    assert names(driver, told) == ["b3"]
    driver.advance_clock("10s")
    assert names(driver, told) == ["a5"]


def test_a_record_that_is_tried_again_keeps_its_place_in_its_stream():
    app = App("plant")
    one, two, told, _, bad = declared(app)
    driver = Driver(app)
    driver.stop()
    driver.pipe(one, *[reading(f"a{minute}", minute) for minute in (1, 3, 5)])
    driver.pipe(two, *[reading(f"b{minute}", minute) for minute in (2, 4, 6)])
    bad.add("a3")
    driver.restart()
    bad.clear()
    driver.advance_clock("5s")
    found = names(driver, told)
    assert [name for name in found if name[0] == "a"] == ["a1", "a3", "a5"]
    assert [name for name in found if name[0] == "b"] == ["b2", "b4", "b6"]


def test_a_crash_loses_and_doubles_nothing_that_waits():
    app = App("plant")
    one, two, told, _, _ = declared(app, waits="10s")
    driver = Driver(app)
    driver.pipe(one, reading("a5", 5), reading("a6", 6))
    driver.crash()
    driver.restart()
    driver.pipe(two, reading("b5", 5))
    driver.advance_clock("1m")
    assert names(driver, told) == ["a5", "b5", "a6"]


@pytest.mark.parametrize("partitions", [1, 3])
def test_what_is_wrong_is_said(partitions):
    app = App("plant")
    one, two = app.stream("one", Reading), app.stream("two", Reading, partitions=partitions)

    @app.service(reads=by_event_time(one, two))
    def several(reading: Reading) -> None: ...

    @app.service(reads=by_event_time(one))
    def alone(reading: Reading) -> None: ...

    assert [problem.code for problem in check(app.graph)] == [
        "service.partitions",
        "service.time-order",
    ]
