"""The score of telemetry: pure, one measurement at a time."""

import pytest
from apps.anomaly.scoring import MOST_METRICS, Ordinary, TelemetryModel, Trend, check, score
from tests.devicefleet import model, ordinary

WHOLE = {"low": 10.0, "high": 20.0, "scale": 5.0, "weight": 1.0}
RANGE = Ordinary(**WHOLE)


def one(threshold=0.5, certain=0.9, **given):
    return TelemetryModel({"server": given}, threshold=threshold, certain=certain)


def test_what_is_within_its_range_scores_nothing():
    assert score(one(x=RANGE), "server", {"x": 20.0}).value == 0
    assert score(one(x=RANGE), "server", {}).contributions == {}


def test_odds_grow_with_the_square_of_the_distance_on_both_sides():
    found = score(one(x=RANGE, y=RANGE), "server", {"x": 30.0, "y": 5.0})
    assert found.contributions == {"x": 4.0, "y": 1.0}
    assert found.value == 5 / 6


def test_a_kind_that_the_model_does_not_know_is_not_scored():
    assert score(one(x=RANGE), "toaster", {"x": 99.0}) is None


def test_a_sensor_that_stands_still_and_a_slow_climb_are_seen():
    learnt, stuck, hot = model(), Trend(), Trend()
    for number in range(300):
        metrics = ordinary(number)
        stuck = stuck.after(
            metrics | {"machine.celsius": 40.5 if number > 200 else metrics["machine.celsius"]}
        )
        hot = hot.after(
            metrics | {"machine.celsius": metrics["machine.celsius"] + max(number - 200, 0) / 4}
        )
    found = score(learnt, "server", stuck.features(ordinary(0)))
    assert next(iter(found.contributions)) == "machine.celsius.still"
    assert found.value > learnt.certain
    found = score(learnt, "server", hot.features(ordinary(0)))
    assert {"machine.celsius.level", "machine.celsius.shift"} <= set(found.contributions)
    assert found.value > learnt.certain


def test_ordinary_devices_are_hardly_ever_anomalous():
    learnt, trend, high = model(), Trend(), 0
    for number in range(2_000):
        metrics = ordinary(number, "another")
        trend = trend.after(metrics)
        high += score(learnt, "server", trend.features(metrics)).value > learnt.threshold
    assert high <= 2


def test_a_trend_is_bounded_and_counts_what_warns():
    trend = Trend().after({f"m{number}": 1.0 for number in range(500)}, ["error: no link", "hello"])
    assert len(trend.metrics) == MOST_METRICS
    assert trend.features(["m0"])["log.warnings"] == 1.0
    assert trend.after({}, []).warnings == 0.9


@pytest.mark.parametrize(
    "broken",
    [
        one(threshold=0.0, x=RANGE),
        one(certain=1.0, x=RANGE),
        one(y=RANGE, x=RANGE),
        one(x=Ordinary(**(WHOLE | {"scale": 0.0}))),
        one(x=Ordinary(**(WHOLE | {"low": 30.0}))),
        one(x=Ordinary(**(WHOLE | {"weight": -1.0}))),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(broken):
    check(one(x=RANGE, y=RANGE))
    with pytest.raises(ValueError, match=r"."):
        check(broken)
