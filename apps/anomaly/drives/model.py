"""The model of drives: a logistic regression, as parameters that can be published and checked."""

from __future__ import annotations

import hashlib
from math import exp
from pathlib import Path

import msgspec
from apps.anomaly.drives.features import FEATURES

__all__ = ["DriveModel", "ModelError", "load_model"]


class ModelError(Exception):
    """Parameters that are not what they have to be; the message says why."""


class DriveModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights for the features of a drive, and from which score on it is an alarm."""

    version: str
    features: tuple[str, ...]
    weights: tuple[float, ...]
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

    def score(self, features: tuple[float, ...]) -> float:
        """Return how likely it is that a drive with such features fails, from 0 to 1."""
        total = self.intercept + sum(
            weight * value for weight, value in zip(self.weights, features, strict=True)
        )
        return 1 / (1 + exp(-max(min(total, 500.0), -500.0)))

    def contributions(self, features: tuple[float, ...]) -> dict[str, float]:
        """Return what each feature adds to the logarithm of the odds, the largest first."""
        parts = {
            name: weight * value
            for name, weight, value in zip(self.features, self.weights, features, strict=True)
        }
        return dict(sorted(parts.items(), key=lambda part: -abs(part[1])))

    def encode(self) -> bytes:
        """Return the parameters with their hash."""
        body = msgspec.json.encode(self)
        return msgspec.json.encode({"sha256": _hash(body), "model": msgspec.Raw(body)})


class _Sealed(msgspec.Struct, forbid_unknown_fields=True):
    sha256: str
    model: msgspec.Raw


def load_model(file: Path | None = None) -> DriveModel:
    """Return the model of a file, by default the one that comes with the application.

    A ModelError says what is wrong with it: a model that is not whole is never used.
    """
    file = file or Path(__file__).with_name("parameters.json")
    try:
        sealed = msgspec.json.decode(file.read_bytes(), type=_Sealed)
        if _hash(bytes(sealed.model)) != sealed.sha256:
            raise ModelError(f"{file}: the parameters are not those that were written")
        model = msgspec.json.decode(sealed.model, type=DriveModel)
    except (OSError, msgspec.MsgspecError) as error:
        raise ModelError(f"{file}: {error}") from error
    if model.features != FEATURES or len(model.weights) != len(FEATURES):
        raise ModelError(f"{file}: the model has other features than this application")
    return model


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
