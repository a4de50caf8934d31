"""The score of telemetry: pure, one measurement at a time; and the same, compiled."""

from math import isfinite

import pytest
from apps.anomaly.devices.device import KINDS, Device, Pace
from apps.anomaly.quick import MOST_COMPILED, Quick
from apps.anomaly.scoring import Ordinary, TelemetryModel, check, score
from apps.anomaly.training.learning import learn
from apps.anomaly.trend import MOST_METRICS, MOST_STILL, Trend
from hypothesis import given
from hypothesis import strategies as st
from tests.devicefleet import at, model, ordinary

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
    assert len(trend.shape.names) == MOST_METRICS
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


LEARNT = model()
NAMES = tuple(ordinary(0))
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 0.3, 0.4, 40.0, 41.5, 39.0, 1e300, -1e308, 5e-324]),
)
MEASUREMENTS = st.one_of(
    st.integers(0, 400).map(ordinary),
    st.tuples(*[NUMBERS] * len(NAMES)).map(lambda values: dict(zip(NAMES, values, strict=True))),
    st.dictionaries(st.sampled_from([*NAMES, "app.new", 'a"\n{0}\x00']), NUMBERS),
)


@given(st.lists(st.tuples(MEASUREMENTS, st.sampled_from([1, 1, 1, 1, 1, 1, 1, 2])), max_size=40))
def test_what_is_compiled_is_what_the_definitions_say_to_the_last_bit(measurements):
    quick, trend = Quick(LEARNT), Trend(1)
    for metrics, started in measurements:
        packed = trend.packed()
        trend = trend.of(started).after(metrics)
        assert Trend.opened(trend.packed()).packed() == trend.packed()
        features = trend.features(metrics)
        assert all(map(isfinite, features.values()))
        if (found := quick.after("server", packed, started, metrics)) is None:
            continue
        after, is_ordinary = found
        assert after == trend.packed()
        if is_ordinary:
            assert trend.long_enough
            assert score(LEARNT, "server", features).value.hex() == (0.0).hex()


def test_nearly_all_of_ordinary_devices_is_the_usual_case():
    quick, packed, found = Quick(LEARNT), Trend(1).after(ordinary(0)).packed(), 0
    for number in range(1, 1_000):
        packed, is_ordinary = quick.after("server", packed, 1, ordinary(number))
        found += is_ordinary
    assert found > 950


def test_a_kind_or_metrics_that_the_model_does_not_know_are_not_compiled():
    packed = Trend(1).after({"x": 1.0}).packed()
    for kind, metrics in (("server", {"x": 1.0}), ("toaster", ordinary(0)), ("server", {})):
        assert Quick(LEARNT).after(kind, packed, 1, metrics) is None
    many = Quick(LEARNT)
    for number in range(MOST_COMPILED):
        many.after(f"kind {number}", packed, 1, {})
    assert many.after("server", Trend(1).after(ordinary(0)).packed(), 1, ordinary(1)) is None


def test_a_device_says_what_it_likes_and_its_past_stays_finite_and_whole():
    trend = Trend(2**70)
    for value in (1e308, -1e308, float("inf"), float("-inf"), float("nan"), 1.0):
        trend = Trend.opened(trend.of(2**70).after({"x": value}, ["error: \n"]).packed())
        assert all(map(isfinite, trend.features(["x"]).values()))
    assert trend.count == 6
    kept = trend.after({"y": 2.0})
    assert kept.shape.names == ("x", "y")
    assert (kept.lasts[0], kept.stills[0]) == (trend.lasts[0], trend.stills[0])


def test_simulated_devices_that_are_healthy_are_hardly_ever_anomalous():
    devices = [Device(f"d{n}", KINDS[n % 2], at=at(0), pace=Pace()) for n in range(10)]
    trends, learnt, samples, blamed, count = {}, None, [], [], 0
    for second in range(1_200):
        for device in devices:
            device.measure(at(second))
            new = device._new.pop()
            trend = trends.get(device.name, Trend()).after(new.metrics, new.log)
            trends[device.name] = trend
            features = trend.features(new.metrics)
            if learnt is None:
                samples.append((device.kind, features))
                continue
            count += 1
            if (found := score(learnt, device.kind, features)).value > learnt.threshold:
                blamed.append(next(iter(found.contributions)))
        if second == 230:
            learnt = learn(samples[300:])
    assert not [feature for feature in blamed if feature.endswith(".still")]
    assert len(blamed) <= count / 2_000, blamed


@pytest.mark.parametrize("longest", [0, 1, 3, 5, 7, 12])
def test_what_stands_still_as_long_as_is_counted_is_certain_unless_that_is_ordinary(longest):
    values = [float(number % (longest + 1)) for number in range(2_000)]
    learnt = learn([("server", {"x.still": value}) for value in values])
    assert score(learnt, "server", {"x.still": 2.0 * longest + 1}).value == 0
    found = score(learnt, "server", {"x.still": MOST_STILL})
    assert (found.value > learnt.certain) == (longest < 7)
