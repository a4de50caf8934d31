"""Windowed aggregations in the test driver: the code that runs as a service, without a broker."""

from datetime import UTC, datetime, timedelta

import pytest

from penstock import App, EventTime, record
from penstock.aggregates import count, mean
from penstock.core.status.eventtimes import EventTimes
from penstock.testing import Driver
from penstock.triggers import every, every_record, on_watermark
from penstock.windows import accumulating, fixed, retracting, sessions

START_AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float = 0.0


def reading(device, seconds, celsius=0.0):
    return Reading(device, START_AT + timedelta(seconds=seconds), celsius)


@pytest.fixture
def app():
    return App("demo")


def facts(pane):
    return pane.pane, pane.readings, pane.withdrawn


def windows(readings, **options):
    return readings.window(fixed("1m"), by="device", **options)


def test_panes_come_early_on_time_and_late_with_what_they_withdraw(app):
    readings = app.stream("readings", Reading)
    trigger = on_watermark(early=every("10s"), late=every_record())
    declared = windows(readings, lateness="10m").trigger(trigger).accumulate(retracting)
    panes = app.stream("panes", declared.aggregate(readings=count()), on="services")
    driver = Driver(app, partitions=1)
    driver.pipe(readings, reading("a", 1), reading("a", 2))
    assert driver.read(panes) == []
    driver.advance_clock("11s")
    assert list(map(facts, driver.read(panes))) == [("early", 2, False)]
    driver.pipe(readings, reading("a", 3), reading("a", 61))
    assert list(map(facts, driver.read(panes))) == [("on_time", 2, True), ("on_time", 3, False)]
    driver.crash()
    driver.restart()
    driver.pipe(readings, reading("a", 4))
    assert list(map(facts, driver.read(panes))) == [("late", 3, True), ("late", 4, False)]
    driver.pipe(readings, reading("a", 3600))
    driver.pipe(readings, reading("a", 5))
    assert [facts(pane) for pane in driver.read(panes) if pane.pane == "late"] == []
    (late,) = driver.late_records()
    assert (late.offset, late.reason, late.window_start) == (6, "expired", START_AT)


def test_a_table_holds_the_latest_result_of_every_window(app):
    readings = app.stream("readings", Reading, event_time=EventTime(disorder="1h"))
    declared = readings.window(sessions(gap="10s"), by="device").trigger(
        on_watermark(early=every_record())
    )
    table = app.table(
        "sessions",
        declared.accumulate(accumulating).aggregate(readings=count(), mean=mean("celsius")),
        on="services",
    )
    driver = Driver(app)
    driver.pipe(readings, reading("a", 0, 1.0), reading("a", 15, 2.0), reading("b", 0))
    assert len(driver.table(table)) == 3
    driver.pipe(readings, reading("a", 8, 6.0))
    rows = driver.table(table)
    assert sorted(rows) == [("a", START_AT), ("b", START_AT)]
    assert (rows["a", START_AT].readings, rows["a", START_AT].mean) == (3, 3.0)


def test_windows_close_on_an_idle_stream_after_the_stated_time(app):
    readings = app.stream("readings", Reading, event_time=EventTime(closes_after="30s"))
    panes = app.stream("panes", windows(readings).aggregate(readings=count()), on="services")
    driver = Driver(app)
    driver.pipe(readings, reading("a", 1))
    driver.advance_clock("58s")
    assert driver.read(panes) == []
    driver.advance_clock("2s")
    assert list(map(facts, driver.read(panes))) == [("on_time", 1, False)]


def test_a_test_may_move_the_event_time_itself(app):
    readings = app.stream("readings", Reading)
    panes = app.stream("panes", windows(readings).aggregate(readings=count()), on="services")
    driver = Driver(app)
    driver.pipe(readings, reading("a", 1), reading("b", 2))
    driver.advance_event_time(START_AT + timedelta(minutes=1))
    assert sorted(pane.device for pane in driver.read(panes)) == ["a", "b"]


def test_windows_in_processing_time_follow_the_clock(app):
    readings = app.stream("readings", Reading)
    declared = readings.window(fixed("1m"), by="device", time="processing")
    panes = app.stream("panes", declared.aggregate(readings=count()), on="services")
    driver = Driver(app)
    driver.pipe(readings, reading("a", 10_000), reading("a", -10_000))
    driver.advance_clock("1m")
    assert list(map(facts, driver.read(panes))) == [("on_time", 2, False)]


def test_what_is_not_committed_comes_again_after_a_crash(app):
    readings = app.stream("readings", Reading)
    panes = app.stream("panes", windows(readings).aggregate(readings=count()), on="services")
    driver = Driver(app, auto_commit=False, partitions=1)
    part = app.graph.part("panes.windows")
    driver.pipe(readings, reading("a", 1))
    driver.commit()
    driver.pipe(readings, reading("a", 2))
    driver.crash()
    driver.restart()
    driver.pipe(readings, reading("a", 61))
    driver.commit()
    assert list(map(facts, driver.read(panes))) == [("on_time", 2, False)]
    assert driver.counts(part).balanced


def test_a_record_that_does_not_decode_is_dead_lettered(app):
    readings = app.stream("readings", Reading)
    app.stream("panes", windows(readings).aggregate(readings=count()), on="services")
    driver = Driver(app)
    driver.pipe_raw(readings, b"a", b"{}")
    assert len(driver.dead_letters()) == 1


def test_panes_late_records_and_those_ahead_of_the_clock_are_counted(app):
    readings = app.stream("readings", Reading, event_time=EventTime(ahead="1d"))
    app.stream("panes", windows(readings).aggregate(readings=count()), on="services")
    driver = Driver(app, start_at=START_AT, partitions=1)
    for seconds in (1, 61, 2, 1_000_000):
        driver.pipe(readings, reading("a", seconds))
    facts = driver.facts(app.graph.part("panes.windows"))
    kinds = ("panes on time", "panes early", "panes late", "late records", "ahead records")
    assert [facts[kind] for kind in kinds] == [1, 0, 0, 1, 1]
    assert [late.reason for late in driver.late_records()] == ["expired", "ahead"]


def test_a_task_tells_its_watermark_also_after_a_restart(app):
    readings = app.stream("readings", Reading, event_time=EventTime(disorder="5s"))
    app.stream("panes", windows(readings).aggregate(readings=count()), on="services")
    driver = Driver(app, partitions=1)
    assert times_of(driver, app) == EventTimes()
    driver.pipe(readings, reading("a", 1), reading("a", 61))
    expected = EventTimes.of_micros(micros(56), micros(61))
    assert times_of(driver, app) == expected
    driver.commit()
    driver.crash()
    driver.restart()
    assert times_of(driver, app) == expected


def test_windows_by_the_clock_have_no_watermark_to_tell(app):
    readings = app.stream("readings", Reading)
    declared = windows(readings, time="processing").aggregate(readings=count())
    app.stream("panes", declared, on="services")
    driver = Driver(app, partitions=1)
    driver.pipe(readings, reading("a", 1))
    assert times_of(driver, app) == EventTimes()


def times_of(driver, app):
    (service,) = app.graph.parts
    return driver.event_times(service)


def micros(seconds):
    return round((START_AT.timestamp() + seconds) * 1e6)
