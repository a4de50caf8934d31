"""How many measurements have a sample: learnt from how far samples are behind, taken over live."""

import pytest
from apps.anomaly.app import app
from apps.anomaly.application import messages, model_alarms, model_versions, samples
from apps.anomaly.scoring import MODEL as TELEMETRY
from apps.anomaly.training.tuning import MODEL, MOST, Runtime, check
from tests.devicefleet import message, model

from penstock.models import opened, sealed
from penstock.testing import Driver


def numbers(driver):
    return [each.number for each in driver.read(samples)]


def settings(driver):
    rows = [row for row in driver.table(model_versions).values() if row.model == MODEL]
    return [opened(row, Runtime).one_in for row in sorted(rows, key=lambda row: row.version)]


def test_who_falls_behind_makes_fewer_samples_and_more_again_when_that_is_over():
    driver = Driver(app)
    driver.pipe(model_versions, sealed(TELEMETRY, 1, model()))
    driver.pipe(messages, *(message(number) for number in range(51)))
    assert numbers(driver) == [30, 40, 50]
    assert settings(driver) == []
    driver.advance_clock("10m")  # what comes now was measured long before
    driver.pipe(messages, *(message(number) for number in range(51, 101)))
    driver.pipe(messages, *(message(number) for number in range(101, 201)))
    [first] = settings(driver)
    assert first == 20
    assert numbers(driver)[-3:] == [160, 180, 200]
    driver.advance_clock("61s")
    driver.crash()
    driver.restart()
    driver.pipe(messages, *(message(number) for number in range(201, 261)))
    driver.pipe(messages, *(message(number) for number in range(261, 401)))
    assert settings(driver) == [20, 40]
    assert numbers(driver)[-2:] == [360, 400]


def test_a_setting_that_makes_no_sense_is_refused_and_told():
    for wrong in (0, -10, MOST + 1):
        with pytest.raises(ValueError, match="one sample in"):
            check(Runtime(wrong))
    driver = Driver(app)
    driver.pipe(model_versions, sealed(TELEMETRY, 1, model()), sealed(MODEL, 1, Runtime(0)))
    driver.pipe(messages, *(message(number) for number in range(51)))
    assert numbers(driver) == [30, 40, 50]
    assert {(each.model, each.code) for each in driver.read(model_alarms)} == {
        (MODEL, "model.senseless")
    }
