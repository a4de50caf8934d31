"""Training of the anomaly detection application on the shared Spark: the same score, fair choices."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from apps.anomaly.records import Decision
from apps.anomaly.scoring import MODEL, TelemetryModel, score
from apps.anomaly.training.job import IN_SERVICE, train
from apps.anomaly.training.learning import learn
from apps.anomaly.training.sparkscore import SCORE, ranges_of
from apps.anomaly.usage import learning as usage_learning
from apps.anomaly.usage.learning import learn_usage
from apps.anomaly.usage.patterns import Usage, nearest
from apps.anomaly.usage.patterns import check as check_usage

from penstock.jobs import JobRun
from penstock.models import ModelVersion, opened, sealed
from penstock.pipelines.jobs.writing import encoded

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

T0 = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = (
    "model string, kind string, device string, number int, at timestamp, score double, "
    "features map<string, double>"
)
VERSIONS = (
    "model string, version int, shape string, sha256 string, parameters string, "
    "trained_on string, figures map<string, double>, published_at timestamp"
)


def features(chance, *, warmer=0.0):
    return {
        "machine.celsius.level": chance.gauss(40 + warmer, 1),
        "machine.celsius.shift": chance.gauss(0, 0.2),
        "machine.celsius.still": 0.0,
        "os.load.level": chance.uniform(0.2, 0.6),
        "os.load.shift": chance.gauss(0, 0.05),
        "log.warnings": float(chance.random() < 0.02),
    }


def samples(count, *, seed=1, warmer_from=None, scored=0.0):
    chance = Random(seed)
    for number in range(count):
        warm = 25.0 if warmer_from is not None and number >= warmer_from else 0.0
        value = 0.95 if warm else scored
        row = features(chance, warmer=warm)
        yield (MODEL, "server", "a", number, T0 + timedelta(seconds=number), value, row)


def run(spark, rows, *versions, asked=False):
    found = [tuple(getattr(each, name) for name in each.__struct_fields__) for each in versions]
    frame = spark.createDataFrame(found, VERSIONS)
    once = JobRun(started_at=T0, offsets={"samples": {0: (0, 9)}}, asked=asked)
    given = list(train(spark.createDataFrame(list(rows), ROWS), frame, run=once))
    assert len(encoded(train, given)) == len(given)  # their readers would take them
    published = [each for each in given if isinstance(each, ModelVersion)]
    return published, [each for each in given if isinstance(each, Decision)]


def test_spark_computes_the_same_scores_to_the_last_bit(spark):
    chance = Random(7)
    model = learn([("server", features(chance)) for _ in range(500)])
    given = [features(chance, warmer=chance.choice((0, 0, 3, 9, 1e6))) for _ in range(400)]
    given += [{}, {"unknown": 1.0}, {"os.load.level": -0.0}, {"machine.celsius.still": 1e308}]
    rows = spark.createDataFrame(
        [("server", each) for each in given], "kind string, features map<string, double>"
    )
    both = rows.join(ranges_of(spark, {"m": model}), "kind").selectExpr(
        "features", f"{SCORE} as score"
    )
    found = both.collect()
    assert len(found) == len(given)
    assert {row.score.hex() for row in found} == {
        score(model, "server", row.features).value.hex() for row in found
    }
    assert all(row.score.hex() == score(model, "server", row.features).value.hex() for row in found)
    assert len({row.score for row in found}) > 50


def test_a_model_is_trained_compared_on_held_back_time_and_published_only_if_it_is_no_worse(spark):
    few, decided = run(spark, samples(900))
    assert (few, decided) == ([], [])

    [first], [decision] = run(spark, samples(3_000))
    assert (first.version, decision.published, decision.in_service) == (1, 1, 0)
    assert decision.held_back_from >= T0 + timedelta(seconds=2_399)
    assert decision.held_back == 600
    assert len(decision.losses) == 6
    assert "samples 0: 0-9" in first.trained_on
    model = opened(first, TelemetryModel)
    assert model.references["server"].keys() == model.kinds["server"].keys()
    assert model.scores["server"].shares
    assert score(model, "server", features(Random(3), warmer=9)).value > model.threshold

    # What is in service is better than all that can be learnt from these few and wild samples.
    wild = list(samples(1_200, seed=2))
    for place in range(0, 900, 9):
        wild[place][-1]["machine.celsius.level"] += 300
        wild[place][-1]["machine.celsius.shift"] += 100
    published, [kept] = run(spark, wild, first)
    assert (published, kept.published, kept.in_service) == ([], 0, 1)
    assert kept.losses[IN_SERVICE] < min(
        loss for name, loss in kept.losses.items() if name != IN_SERVICE
    )

    # It does not know pumps, though: it misses whatever is wrong with them.
    pumps = [(MODEL, "pump", *row[2:6], {"machine.bar.level": 4.0 + row[3] % 7}) for row in wild]
    [wider], [decided] = run(spark, [*wild, *pumps], first)
    assert decided.missed[IN_SERVICE] > 0.4
    assert opened(wider, TelemetryModel).kinds.keys() == {"pump", "server"}

    # The world has changed: what is recent is learnt, and takes the number behind a broken version.
    broken = ModelVersion(
        **{n: getattr(first, n) for n in first.__struct_fields__} | {"version": 4}
    )
    drifted = samples(3_000, warmer_from=1_500)
    [second], [taken] = run(spark, drifted, first, broken, asked=True)
    assert (second.version, taken.asked, taken.in_service) == (5, True, 1)
    assert taken.losses[taken.chosen] < taken.losses[IN_SERVICE]
    assert "recent" in taken.chosen
    after = opened(second, TelemetryModel)
    assert score(after, "server", features(Random(3), warmer=25)).value <= after.threshold


def test_few_anomalies_are_not_learnt_from(spark):
    rows = list(samples(2_000))
    for number in range(1_000, 1_040):
        rows[number] = (*rows[number][:5], 0.95, rows[number][6] | {"machine.celsius.level": 90.0})
    learnt = sealed(MODEL, 1, learn([("server", row[-1]) for row in rows[:900]]))
    published, [decision] = run(spark, rows, learnt)
    model = opened(published[0] if published else learnt, TelemetryModel)
    assert score(model, "server", rows[1_000][6]).value > model.threshold
    assert decision.samples == 2_000


def used(levels, *, device, number):
    row = {"os.load.level": levels[0], "app.requests.level": levels[1], "os.load.shift": 0.0}
    at = T0 + timedelta(seconds=number)
    return (MODEL, "server", device, number, at, 0.0, row)


def patterns_of(spark, rows, *versions):
    found = [tuple(getattr(each, name) for name in each.__struct_fields__) for each in versions]
    once = JobRun(started_at=T0, offsets={"samples": {0: (0, 9)}}, asked=False)
    frame = spark.createDataFrame(found, VERSIONS)
    return learn_usage(spark.createDataFrame(rows, ROWS), frame, run=once)


def test_patterns_of_usage_are_found_and_replaced_only_by_better_ones(spark, monkeypatch):
    monkeypatch.setattr(usage_learning, "NUMBERS", (2, 3))
    chance = Random(4)
    busy, idle = (0.9, 400.0), (0.1, 20.0)

    def week(*, idle_from=8):
        return [
            used(
                (load * chance.gauss(1, 0.02), many * chance.gauss(1, 0.02)),
                device=f"d{n}",
                number=at,
            )
            for n in range(12)
            for load, many in [busy if n < idle_from else idle]
            for at in range(40)
        ]

    first = patterns_of(spark, week())
    assert first.version == 1
    assert first.figures["silhouette of 2 in server"] > 0.9
    usage = opened(first, Usage)
    check_usage(usage)
    [kind] = usage.kinds.values()
    assert (kind.levels, kind.shares) == (["app.requests.level", "os.load.level"], [8 / 12, 4 / 12])
    at = {"app.requests.level": 390.0, "os.load.level": 0.85}
    assert (nearest(kind, at), nearest(kind, dict.fromkeys(at, 0.1))) == (0, 1)
    assert patterns_of(spark, week(), first) is None  # no better
    moved = [
        (*row[:6], row[6] | {"os.load.level": 3 * row[6]["os.load.level"]})
        for row in week(idle_from=6)
    ]
    second = patterns_of(spark, moved, first)
    assert (second.version, opened(second, Usage).kinds["server"].shares) == (2, [0.5, 0.5])
