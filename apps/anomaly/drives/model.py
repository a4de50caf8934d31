"""The model of drives: a logistic regression, as parameters that can be published and checked."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from pathlib import Path

import msgspec

from apps.anomaly.drives.features import FEATURES
from penstock import record
from penstock.errors import DataError
from penstock.models import ModelVersion, opened

__all__ = ["MODEL", "DriveModel", "ModelError", "check", "load_model"]

MODEL = "drives"
"""The name of the model among others."""


class ModelError(Exception):
    """A model that is not what it has to be; the message says why."""


@record()
class DriveModel:
    """Weights for the features of a drive, and from which score on it is an alarm."""

    features: list[str]
    weights: list[float]
    """Of the features as they are, not scaled."""
    intercept: float
    threshold: float
    """A score above it is an alarm..."""
    certain: float
    """... and above this one the drive is to be turned off as well."""
    risks: dict[str, float]
    """How often drives of a model failed in training, smoothed."""
    usual_risk: float
    """That of a model which was not in training."""

    def risk(self, model: str) -> float:
        """Return how often drives of a model fail."""
        return self.risks.get(model, self.usual_risk)

    def score(self, features: Sequence[float]) -> float:
        """Return how likely it is that a drive with such features fails, from 0 to 1."""
        total = self.intercept + sum(
            weight * value for weight, value in zip(self.weights, features, strict=True)
        )
        return 1 / (1 + exp(-max(min(total, 500.0), -500.0)))

    def contributions(self, features: Sequence[float]) -> dict[str, float]:
        """Return what each feature adds to the logarithm of the odds, the largest first."""
        parts = {
            name: weight * value
            for name, weight, value in zip(self.features, self.weights, features, strict=True)
        }
        return dict(sorted(parts.items(), key=lambda part: -abs(part[1])))


def check(model: DriveModel) -> None:
    """Raise a ValueError for a model of other features than this application has."""
    if tuple(model.features) != FEATURES or len(model.weights) != len(FEATURES):
        raise ValueError("the model has other features than this application")


def load_model(file: Path | None = None) -> DriveModel:
    """Return the model of a file, by default the one that comes with the application.

    A ModelError says what is wrong with it: a model that is not whole is never used.
    """
    file = file or Path(__file__).with_name("parameters.json")
    try:
        model = opened(msgspec.json.decode(file.read_bytes(), type=ModelVersion), DriveModel)
        check(model)
    except DataError as error:
        raise ModelError(f"{file}: {error.message}") from error
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise ModelError(f"{file}: {error}") from error
    return model
