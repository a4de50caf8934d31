"""Scoring: one measurement at a time, by the newest good version of the model."""

from __future__ import annotations

from collections.abc import Iterator

from apps.anomaly.application import (
    anomalies,
    app,
    model_alarms,
    model_versions,
    samples,
    telemetry,
)
from apps.anomaly.records import Anomaly, ModelAlarm, Sample, Telemetry
from apps.anomaly.scoring import MODEL, TelemetryModel, Trend, check
from apps.anomaly.scoring import score as score_of
from apps.anomaly.training.learning import learn
from penstock import State, feedback
from penstock.models import Models, ModelVersion, sealed
from penstock.tables import Rows, broadcast

__all__ = ["FirstModel", "Scorer"]

ENOUGH = 2_000
"""The first model is learnt from so many samples."""
ONE_IN = 10
"""Once there is a model, so many measurements of a device have one sample."""
WILD, TRUSTED, MANY = 0.3, 20, 1_000
"""If more than this share of the scores is certain, beside so many that are given in advance, no
device is taken out of use for it; after so many scores the counts are halved."""
SETTLED = 30
"""A device's first measurements say little of it: its trend is too short."""


class Restraint:
    """Tells a model that takes too many devices out of use: it lies, or the world has changed.

    It counts for one partition, anew for each version, and newer scores count more.
    """

    def __init__(self) -> None:
        self.version = 0
        self.seen = self.certain = 0.0
        self.told = False

    def allows(self, version: int, *, certain: bool) -> bool:
        """Count a score; return whether a certain one may be believed."""
        if version != self.version:
            self.version, self.seen, self.certain, self.told = version, 0.0, 0.0, False
        self.seen += 1
        self.certain += certain
        if self.seen >= MANY:
            self.seen, self.certain = self.seen / 2, self.certain / 2
        return self.certain <= WILD * (self.seen + TRUSTED)

    def first(self) -> bool:
        """Return whether nobody was told of this version yet."""
        found, self.told = not self.told, True
        return found


@app.service(
    reads=(telemetry, broadcast(model_versions)),
    writes=(anomalies, model_alarms, samples),
    name="scorer",
)
class Scorer:
    """Scores what no device has scored, and gives samples: all of them while there is no model."""

    def __init__(self) -> None:
        self.models = Models(MODEL, TelemetryModel, check=check)
        self.restraint = Restraint()

    def process(
        self, measured: Telemetry, trend: State[Trend], rows: Rows[ModelVersion]
    ) -> Iterator[Anomaly | ModelAlarm | Sample]:
        """Remember a measurement and score it; say which versions of the model are not used."""
        past = trend.get(Trend()).of(measured.started)
        after = past.after(measured.metrics, measured.log)
        trend.set(after)
        served = self.models.newest(rows)
        for refusal in self.models.refusals():
            yield ModelAlarm(refusal.model, refusal.version, refusal.code, refusal.reason)
        features = after.features(measured.metrics)
        sampled = served is None or measured.number % ONE_IN == 0
        here = after.long_enough and (sampled or measured.scored is None)
        if served is not None and here:
            found = score_of(served.parameters, measured.kind, features)
        else:
            found = None
        if sampled and measured.number >= SETTLED:
            yield Sample(
                model=MODEL,
                kind=measured.kind,
                features=features,
                device=measured.device,
                at=measured.at,
                started=measured.started,
                number=measured.number,
                score=None if found is None else found.value,
                model_version=0 if served is None else served.version,
            )
        if served is None or found is None or measured.scored is not None:
            return
        model = served.parameters
        certain = found.value > model.certain
        if not self.restraint.allows(served.version, certain=certain) and certain:
            certain = False
            if self.restraint.first():
                text = f"more than {WILD:.0%} of its scores are certain: none is believed"
                yield ModelAlarm(MODEL, served.version, "model.wild", text)
        if found.value > model.threshold:
            yield Anomaly(
                device=measured.device,
                kind=measured.kind,
                at=measured.at,
                started=measured.started,
                number=measured.number,
                score=found.value,
                threshold=model.threshold,
                certain=certain,
                model=MODEL,
                model_version=served.version,
                features=features,
                contributions=found.contributions,
            )


@app.service(
    reads=(samples, broadcast(model_versions)), writes=feedback(model_versions), name="first_model"
)
class FirstModel:
    """Learns the first version of the model, while there is none."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, float]]] = []

    def process(
        self, sample: Sample, done: State[bool], rows: Rows[ModelVersion]
    ) -> ModelVersion | None:
        """Collect samples; publish a model once there are enough of them."""
        if done.get(False) or any(row.model == MODEL for row in rows):
            self.seen.clear()
            return None
        self.seen.append((sample.kind, sample.features))
        if len(self.seen) < ENOUGH:
            return None
        taken, self.seen = self.seen, []
        done.set(True)
        return sealed(
            MODEL,
            1,
            learn(taken),
            trained_on=f"the first {len(taken)} samples of the stream",
            figures={"samples": float(len(taken))},
        )
