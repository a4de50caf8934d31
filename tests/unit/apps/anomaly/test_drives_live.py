"""The application in the test driver: a failing drive from its values to its commands."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from apps.anomaly.application import app, model_alarms, model_versions
from apps.anomaly.drives import graph as drives
from apps.anomaly.drives.features import FEATURES, DriveDay
from apps.anomaly.drives.model import DriveModel, load_model
from apps.anomaly.drives.replay import replay

from penstock.models import ModelVersion, sealed
from penstock.testing import Driver

FIRST = datetime(2013, 4, 10, tzinfo=UTC)


def day(number, serial="A", *, pending=0, sectors=0, hours=None):
    hours = 20_000 + 24 * number if hours is None else hours
    at = FIRST + timedelta(days=number)
    return DriveDay(serial, at, "M", 3_000_000_000_000, 7, sectors, hours, pending)


def work(number, done, serial="A"):
    return drives.DriveWork(serial, FIRST + timedelta(days=number, hours=1), done)


@pytest.fixture
def driver():
    started = Driver(app)
    started.pipe(model_versions, sealed("drives", 1, load_model()))
    return started


def test_a_failing_drive_goes_from_its_values_to_its_commands_once(driver):
    for number in range(4):
        driver.pipe(drives.drive_days, day(number, "well"), day(number))
    assert driver.read(drives.drive_anomalies) == []
    for number in range(4, 8):
        # Sectors are pending and the clock stands still: nobody doubts this drive's end.
        driver.pipe(
            drives.drive_days,
            day(number, "well"),
            day(number, pending=900, sectors=50, hours=20_072),
        )
        driver.crash()
        driver.restart()
    found = driver.read(drives.drive_anomalies)
    assert [each.serial for each in found] == ["A"] * 4
    assert found[0].certain
    assert found[0].model_version == 1
    assert "stalled" in found[0].contributions
    driver.pipe(drives.drive_work, work(7, "moving"), work(7, "moved"))
    assert [each.command for each in driver.read(drives.drive_commands)] == [
        "move-data",
        "turn-off",
    ]
    assert driver.table(drives.drives)["A"].state == "off"
    assert "well" not in driver.table(drives.drives)


def test_work_that_nobody_asked_for_is_an_alarm(driver):
    driver.pipe(drives.drive_work, work(0, "moved"))
    assert [each.text for each in driver.read(drives.drive_alarms)] == ["drive_work in healthy"]


def test_without_a_model_days_are_remembered_and_a_broken_one_is_an_alarm():
    driver = Driver(app)
    good = sealed("drives", 1, load_model())
    broken = ModelVersion(**(msgspec.structs.asdict(good) | {"parameters": "{}"}))
    driver.pipe(drives.drive_days, day(0), day(1))
    driver.pipe(model_versions, broken)
    driver.pipe(drives.drive_days, day(2), day(3, pending=900, sectors=50, hours=20_048))
    [alarm] = driver.read(model_alarms)
    assert (alarm.version, alarm.code) == (1, "model.corrupt")
    assert driver.read(drives.drive_anomalies) == []
    driver.pipe(model_versions, sealed("drives", 2, load_model()))
    driver.pipe(drives.drive_days, day(4, pending=900, sectors=50, hours=20_048))
    assert [each.model_version for each in driver.read(drives.drive_anomalies)] == [2]


def test_a_model_of_other_features_leaves_the_last_good_one(driver):
    other = msgspec.structs.asdict(load_model()) | {"features": list(FEATURES[1:])}
    driver.pipe(model_versions, sealed("drives", 2, DriveModel(**other)))
    driver.pipe(drives.drive_days, day(0), day(1, pending=900, sectors=50, hours=20_000))
    assert [each.code for each in driver.read(model_alarms)] == ["model.senseless"]
    assert {each.model_version for each in driver.read(drives.drive_anomalies)} == {1}


def test_the_service_and_the_replay_of_a_file_alarm_at_the_same_drives(driver):
    days = [
        day(number, f"d{drive}", pending=drive * max(number - drive % 5, 0), sectors=drive)
        for number in range(10)
        for drive in range(30)
    ]
    driver.pipe(drives.drive_days, *days)
    first = {}
    for each in driver.read(drives.drive_anomalies):
        first[each.serial] = min(each.at.date(), first.get(each.serial, each.at.date()))
    replayed = replay([(each, False) for each in days], load_model())
    expected = {name: drive.alarmed_on for name, drive in replayed.items() if drive.alarmed_on}
    assert first == expected
    assert 0 < len(first) < 30
