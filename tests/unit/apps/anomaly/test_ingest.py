"""Ingest in the test driver: each message once, clocks put right."""

from random import Random

import pytest
from apps.anomaly.app import app
from apps.anomaly.application import acknowledgements, device_alarms, messages, telemetry
from apps.anomaly.ingest import opened
from apps.anomaly.records import Burst
from tests.devicefleet import STARTED, at, message, receipt

from penstock.testing import Driver


@pytest.fixture
def driver():
    return Driver(app)


def numbers(driver):
    return [each.number for each in driver.read(telemetry)]


def test_each_message_is_taken_once_in_whatever_order_they_come(driver):
    sent = [message(number) for number in range(300)] * 3
    for place in range(0, len(sent), 20):  # out of order, by a little
        part = sent[place : place + 20]
        Random(place).shuffle(part)
        sent[place : place + 20] = part
    driver.pipe(messages, *sent)
    assert sorted(numbers(driver)) == list(range(300))


def test_a_device_that_starts_again_begins_anew_and_what_it_sent_before_is_left_out(driver):
    driver.pipe(messages, message(0), message(1), message(0, started=STARTED + 1), message(2))
    assert [(each.started, each.number) for each in driver.read(telemetry)] == [
        (STARTED, 0),
        (STARTED, 1),
        (STARTED + 1, 0),
    ]


def test_a_clock_that_is_off_is_put_right_and_said_once(driver):
    driver.pipe(messages, *(message(number, clock=-3600, delay=0.1) for number in range(10)))
    found = driver.read(telemetry)
    assert all(abs((each.at - at(each.number)).total_seconds()) < 0.2 for each in found)
    assert [each.text for each in driver.read(device_alarms)] == ["its clock is +3600 s behind"]


def test_a_slow_way_is_not_taken_for_a_clock_that_is_off(driver):
    driver.pipe(messages, message(0), message(1, delay=8.0), message(2))
    assert [each.at for each in driver.read(telemetry)] == [at(0), at(1), at(2)]
    assert driver.read(device_alarms) == []


def test_what_a_device_has_done_is_said_once_however_often_it_says_so(driver):
    driver.pipe(messages, *(receipt(number, "c1", "moved") for number in range(3)))
    driver.pipe(messages, receipt(3, "c2", "moved"))
    assert [each.command for each in driver.read(acknowledgements)] == ["c1", "c2"]


def test_a_burst_is_many_measurements():
    burst = Burst(7, at(0), [0.0, 1.5], {"x": [1.0, None], "y": [2.0, 3.0]}, {"8": ["error: x"]})
    first, second = opened(burst)
    assert (first.number, first.at, first.metrics, first.log) == (
        7,
        at(0),
        {"x": 1.0, "y": 2.0},
        [],
    )
    assert (second.number, second.at, second.metrics, second.log) == (
        8,
        at(1.5),
        {"y": 3.0},
        ["error: x"],
    )
