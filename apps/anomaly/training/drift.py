"""Drift: whether what comes is still what the model in service was trained on.

The test is the population stability index, of each feature and of the scores, by kind of device.
From 0.25 on there is an alarm, once for each version, and the alarm asks for training.
"""

from __future__ import annotations

from collections.abc import Iterator

from apps.anomaly.application import app, drift_alarms, model_versions, samples
from apps.anomaly.records import DriftAlarm, Sample
from apps.anomaly.scoring import MODEL, TelemetryModel, check
from penstock import State, record
from penstock.models import Drift, Models, ModelVersion, Reference
from penstock.tables import Rows, broadcast

__all__ = ["SCORE", "WatchDrift"]

WINDOW = 500
"""So many samples of a kind are compared at least."""
SCORE = "score"


@record()
class Watched:
    """What came since a version took over: for each part of each reference a count."""

    version: int = 0
    counts: dict[str, list[float]] = {}  # noqa: RUF012 - each record has its own
    told: list[str] = []  # noqa: RUF012


@app.service(reads=(samples, broadcast(model_versions)), writes=drift_alarms, name="drift")
class WatchDrift:
    """Compares samples with the references of the version in service."""

    def __init__(self) -> None:
        self.models = Models(MODEL, TelemetryModel, check=check)

    def process(
        self, sample: Sample, watched: State[Watched], rows: Rows[ModelVersion]
    ) -> Iterator[DriftAlarm]:
        """Count a sample; say what has drifted, once for each version."""
        served = self.models.newest(rows)
        if served is None:
            return
        past = watched.get(Watched())
        if past.version != served.version:
            past = Watched(served.version)
        if sample.model_version == served.version:
            for name, value, reference in _compared(sample, served.parameters):
                drift = Drift(reference, window=WINDOW, counts=past.counts.get(name))
                drift.see(value)
                past.counts[name] = drift.counts
                if drift.drifted and name not in past.told:
                    past.told.append(name)
                    kind, _, of = name.partition("/")
                    index = round(drift.index, 4)
                    yield DriftAlarm(MODEL, served.version, sample.at, kind, of, index)
        watched.set(past)


def _compared(sample: Sample, model: TelemetryModel) -> Iterator[tuple[str, float, Reference]]:
    references = model.references.get(sample.kind, {})
    for name, value in sample.features.items():
        if (reference := references.get(name)) is not None:
            yield f"{sample.kind}/{name}", value, reference
    scores = model.scores.get(sample.kind)
    if scores is not None and sample.score is not None:
        yield f"{sample.kind}/{SCORE}", sample.score, scores
