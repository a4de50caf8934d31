"""Scores for whoever asks over HTTP: a service of its own, behind a gateway.

::

    curl localhost:8800/v1/questions/scores -H 'content-type: application/json' \
      -d '{"device": "drive-1", "kind": "drive", "features": {"machine.celsius.level": 71.0}}'

It needs no past of the device: whoever asks has the features. `remote` asks from Python.
"""

from __future__ import annotations

from apps.anomaly.application import app, model_versions
from apps.anomaly.scoring import MODEL, TelemetryModel, check, score
from penstock import record
from penstock.models import Models, ModelVersion, Served
from penstock.tables import Rows, broadcast

__all__ = ["Scored", "Scores", "ToScore", "scored", "scores"]


@record(key="device")
class ToScore:
    """Features of one measurement of one device."""

    device: str
    kind: str
    features: dict[str, float]


@record()
class Scored:
    """The score of features, and the version of the model that gave it."""

    score: float | None
    """None: there is no model, or it does not know devices of this kind."""
    model_version: int = 0
    threshold: float = 1.0
    certain: float = 1.0
    contributions: dict[str, float] = {}  # noqa: RUF012 - each record has its own


scores = app.questions("scores", ToScore, answers=Scored, timeout="2s", keeps="1h")


@app.service(
    answers=scores, reads=(broadcast(model_versions),), name="score", delivery="at_least_once"
)
class Scores:
    """Answers with the score by the newest good version."""

    def __init__(self) -> None:
        self.models = Models(MODEL, TelemetryModel, check=check)

    def process(self, asked: ToScore, rows: Rows[ModelVersion]) -> Scored:
        """Return the score of features."""
        return scored(self.models.newest(rows), asked)


def scored(served: Served[TelemetryModel] | None, asked: ToScore) -> Scored:
    """Return the score of features by a version; the same code for the service and its callers."""
    if served is None:
        return Scored(None)
    model = served.parameters
    found = score(model, asked.kind, asked.features)
    if found is None:
        return Scored(None, served.version, model.threshold, model.certain)
    return Scored(found.value, served.version, model.threshold, model.certain, found.contributions)


app.gateway("scoring", offers=scores)
