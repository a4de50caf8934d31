"""Patterns of usage: which one is near, and when a device has another one."""

import pytest
from apps.anomaly.app import app
from apps.anomaly.application import model_alarms, model_versions, samples
from apps.anomaly.records import Sample
from apps.anomaly.scoring import MODEL as TELEMETRY
from apps.anomaly.usage.following import device_usage
from apps.anomaly.usage.patterns import MODEL, Kind, Usage, check, nearest
from tests.devicefleet import at

from penstock.models import sealed
from penstock.testing import Driver

WHOLE = {
    "levels": ["load.level", "requests.level"],
    "means": [0.5, 100.0],
    "scales": [0.1, 20.0],
    "centres": [[0.0, 0.0], [3.0, 3.0]],
    "shares": [0.7, 0.3],
}
KIND = Kind(**WHOLE)
USUAL = {"load.level": 0.5, "requests.level": 100.0}
BUSY = {"load.level": 0.8, "requests.level": 160.0}


def test_the_nearest_pattern_is_found_and_a_device_between_two_stays_where_it_is():
    between = {"load.level": 0.66, "requests.level": 131.0}
    assert (nearest(KIND, USUAL), nearest(KIND, BUSY)) == (0, 1)
    assert (nearest(KIND, between, now=0), nearest(KIND, between, now=1)) == (0, 1)
    assert nearest(KIND, BUSY, now=0) == 1
    assert nearest(KIND, USUAL, now=7) == 0  # a version with fewer patterns
    assert nearest(KIND, {"load.level": 0.5}) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"centres": []},
        {"shares": [1.0]},
        {"means": [0.5]},
        {"centres": [[0.0], [1.0]]},
        {"scales": [0.1, 0.0]},
        {"levels": [], "means": [], "scales": [], "centres": [[], []]},
    ],
)
def test_patterns_that_make_no_sense_are_refused(broken):
    check(Usage({"server": KIND}))
    with pytest.raises(ValueError, match="patterns of 'server'"):
        check(Usage({"server": Kind(**(WHOLE | broken))}))


def sample(number, levels, device="a"):
    features = levels | {"load.shift": 9.0}
    return Sample(TELEMETRY, "server", features, device, at(number), 1, number)


def test_a_service_says_which_pattern_each_device_follows_over_a_crash_and_a_new_version():
    driver = Driver(app)
    driver.pipe(samples, *(sample(n, USUAL) for n in range(5)))
    assert driver.read(device_usage) == []  # nobody has found any pattern yet
    driver.pipe(model_versions, sealed(MODEL, 1, Usage({"server": KIND})))
    driver.pipe(samples, sample(5, USUAL), sample(5, BUSY, "b"))
    found = driver.read(device_usage)
    assert [(each.device, each.pattern, each.before) for each in found] == [
        ("a", 0, None),
        ("b", 1, None),
    ]
    driver.crash()
    driver.restart()
    driver.pipe(samples, *(sample(n, BUSY) for n in range(6, 40)))
    [moved] = driver.read(device_usage)
    assert (moved.device, moved.pattern, moved.before, moved.model_version) == ("a", 1, 0, 1)
    driver.pipe(
        model_versions, sealed(MODEL, 2, Usage({"server": Kind(**(WHOLE | {"shares": []}))}))
    )
    driver.pipe(samples, sample(41, BUSY))
    assert driver.read(device_usage) == []
    assert {each.code for each in driver.read(model_alarms)} == {"model.senseless"}
    driver.pipe(model_versions, sealed(MODEL, 3, Usage({"server": KIND})))
    driver.pipe(samples, sample(42, BUSY))
    [each] = driver.read(device_usage)
    assert (each.pattern, each.before, each.model_version) == (1, None, 3)
