"""Trains the model of drives with Spark MLlib, from files of daily values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from apps.anomaly.drives.features import FEATURES, DriveDay, DriveHistory
from apps.anomaly.drives.model import DriveModel
from apps.anomaly.drives.replay import Drive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["train"]

FLAGGED = 0.04
"""The share of healthy drives in training whose highest score may be above the threshold."""
_SMOOTHING = 5
"""So many drives with the usual risk are added to those of each model."""
_REGULARIZATION = 5e-4

Days = list[tuple[DriveDay, bool]]


def train(spark: SparkSession, days: Days) -> DriveModel:
    """Return a model of these days; rows of the day of a failure are not learnt from.

    Each drive weighs the same, however many days it has.
    """
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.linalg import Vectors

    failed = {values.serial for values, fails in days if fails}
    risks, usual = model_risks(days, failed)
    counts = Counter(values.serial for values, fails in days if not fails)
    histories: dict[str, DriveHistory] = {}
    rows = []
    for values, fails in days:
        before = histories.get(values.serial, DriveHistory())
        history = histories[values.serial] = before.after(values)
        risk = risks.get(values.model, usual)
        found = history.features(values, before=before, model_risk=risk)
        if not fails:
            label = float(values.serial in failed)
            rows.append((label, 1 / counts[values.serial], Vectors.dense(found)))
    frame = spark.createDataFrame(rows, ["label", "weight", "features"])
    fitted = LogisticRegression(weightCol="weight", regParam=_REGULARIZATION, maxIter=200).fit(
        frame
    )
    model = DriveModel(
        features=list(FEATURES),
        weights=[float(weight) for weight in fitted.coefficients],
        intercept=float(fitted.intercept),
        threshold=1.0,
        certain=1.0,
        risks=risks,
        usual_risk=usual,
    )
    return with_threshold(model, days, failed)


def model_risks(days: Days, failed: set[str]) -> tuple[dict[str, float], float]:
    """Return how often drives of each model failed, drawn towards how often any did."""
    models = {values.serial: values.model for values, _ in days}
    usual = len(failed) / len(models)
    many, fails = Counter(models.values()), Counter(models[serial] for serial in failed)
    risks = {
        model: (fails[model] + _SMOOTHING * usual) / (count + _SMOOTHING)
        for model, count in sorted(many.items())
    }
    return risks, usual


def with_threshold(model: DriveModel, days: Days, failed: set[str]) -> DriveModel:
    """Return the model with the threshold that flags as many healthy drives as it may."""
    drives: dict[str, Drive] = {}
    for values, fails in days:
        drive = drives.setdefault(values.serial, Drive(values.serial))
        score = drive.see(values, model)
        if not fails:
            drive.highest = max(drive.highest, score)
    healthy = [drive.highest for drive in drives.values() if drive.serial not in failed]
    return DriveModel(
        features=model.features,
        weights=model.weights,
        intercept=model.intercept,
        threshold=_above(healthy, FLAGGED),
        certain=_above(healthy, FLAGGED / 4),
        risks=model.risks,
        usual_risk=model.usual_risk,
    )


def _above(scores: Iterable[float], share: float) -> float:
    """Return the score that this share of the scores is above."""
    ordered = sorted(scores, reverse=True)
    return ordered[int(share * len(ordered))]
