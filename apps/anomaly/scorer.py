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
from apps.anomaly.quick import Quick
from apps.anomaly.records import Anomaly, ModelAlarm, Sample, Telemetry
from apps.anomaly.scoring import MODEL, Score, TelemetryModel, check
from apps.anomaly.scoring import score as score_of
from apps.anomaly.training import tuning
from apps.anomaly.training.learning import learn
from apps.anomaly.training.tuning import ONE_IN, Runtime, one_in
from apps.anomaly.trend import Trend
from penstock import State, feedback
from penstock.models import Models, ModelVersion, Served, sealed
from penstock.tables import Rows, broadcast

__all__ = ["FirstModel", "Scorer"]

ENOUGH = 2_000
"""The first model is learnt from so many samples."""
WILD, TRUSTED, MANY = 0.3, 20, 1_000
"""If more than this share of the scores is certain, beside so many that are given in advance, no
device is taken out of use for it; after so many scores the counts are halved."""
SETTLED = 30
"""A device's first measurements say little of it: its trend is too short."""
NOTHING = TelemetryModel({}, threshold=0.5, certain=0.9)
"""Knows no kind of device."""
NO_ODDS = Score(0.0, {})


class Restraint:
    """Tells a model that takes too many devices out of use: it lies, or the world has changed.

    It counts the scores of one version in one partition, and newer ones count more.
    """

    def __init__(self) -> None:
        self.seen = self.certain = 0.0
        self.told = False

    def allows(self, *, certain: bool) -> bool:
        """Count a score; return whether a certain one may be believed."""
        self.seen += 1
        self.certain += certain
        if self.seen >= MANY:
            share = MANY / 2 / self.seen
            self.seen, self.certain = self.seen * share, self.certain * share
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
        self.served: Served[TelemetryModel] | None = None
        self.quick = Quick(NOTHING)
        self.restraint = Restraint()
        self.settings = Models(tuning.MODEL, Runtime, check=tuning.check)
        self.one_in = ONE_IN

    def process(
        self, measured: Telemetry, past: State[bytes], rows: Rows[ModelVersion]
    ) -> list[Anomaly | ModelAlarm | Sample] | None:
        """Remember a measurement and score it; say which versions of the model are not used."""
        served = self.models.newest(rows)
        if served is not self.served:
            self.served, self.quick = served, Quick(served.parameters if served else NOTHING)
            self.restraint = Restraint()
        packed, quick = past.get(), None
        if packed is not None and not measured.log:
            kind, started = measured.kind, measured.started
            quick = self.quick.after(kind, packed, started, measured.metrics)
        if quick is None:
            before = Trend() if packed is None else Trend.opened(packed)
            trend = before.of(measured.started).after(measured.metrics, measured.log)
            after, ordinary = trend.packed(), False
        else:
            after, ordinary = quick
        past.set(after)
        if ordinary and measured.number % self.one_in and served and not self.models.refused:
            if measured.scored is None:
                self.restraint.seen += 1
            return None
        self.one_in = one_in(self.settings.newest(rows))
        if quick is not None:
            trend = Trend.opened(after)
        return list(self._said(measured, trend, served, ordinary=ordinary))

    def _said(
        self,
        measured: Telemetry,
        trend: Trend,
        served: Served[TelemetryModel] | None,
        *,
        ordinary: bool,
    ) -> Iterator[Anomaly | ModelAlarm | Sample]:
        """Give what there is to say of a measurement that may be a sample, or anomalous."""
        for each in (*self.models.refusals(), *self.settings.refusals()):
            yield ModelAlarm(each.model, each.version, each.code, each.reason)
        features = trend.features(measured.metrics)
        sampled = served is None or measured.number % self.one_in == 0
        found = None
        if served is not None and trend.long_enough and (sampled or measured.scored is None):
            known = served.parameters
            found = NO_ODDS if ordinary else score_of(known, measured.kind, features)
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
        if not self.restraint.allows(certain=certain) and certain:
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
