"""The model of telemetry, and the score: the same code in services, on devices and in tests.

The features of a ``Trend`` say what a measurement means after the past of its device, and ``score``
how unusual this is for a device of its kind. A score is computed by addition, multiplication and
comparison alone, in the order of the names of the features. So any engine with double precision
computes the same, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

import msgspec

from penstock import record
from penstock.models import Reference

__all__ = [
    "MODEL",
    "Ordinary",
    "Score",
    "TelemetryModel",
    "check",
    "for_kind",
    "score",
]

MODEL = "telemetry"
"""The name of the model among others."""

MOST_EXCESS = 10.0
"""How far outside of the ordinary a feature can be, in units of its scale."""


@record()
class Ordinary:
    """The range of a feature that is ordinary for a kind of device."""

    low: float
    high: float
    scale: float
    """A value outside of the range counts by its distance in this unit."""
    weight: float


@record()
class TelemetryModel:
    """What is ordinary for each kind of device, and from which score on it is an alarm."""

    kinds: dict[str, dict[str, Ordinary]]
    """By kind of device and name of feature. A kind that is not here is not scored."""
    threshold: float
    """A score above it is an anomaly..."""
    certain: float
    """... and above this one the device is to be taken out of use."""
    references: dict[str, dict[str, Reference]] = {}  # noqa: RUF012 - each record has its own
    """How the features of each kind were in training; nothing is scored with it."""
    scores: dict[str, Reference] = {}  # noqa: RUF012
    """How the scores of each kind were in training."""


@dataclass(frozen=True, slots=True)
class Score:
    """How unusual a measurement is, from 0 to 1, and which features made it so."""

    value: float
    contributions: dict[str, float]
    """What each feature adds to the odds, the largest first; none that adds nothing."""


def score(model: TelemetryModel, kind: str, given: Mapping[str, float]) -> Score | None:
    """Return how unusual features are for a device of a kind; None: the model does not know it.

    The odds are the sum of ``weight * excess ** 2``, in the order of the model's names; the score
    is ``odds / (1 + odds)``. A feature that is missing adds nothing.
    """
    ordinary = model.kinds.get(kind)
    if ordinary is None:
        return None
    odds = 0.0
    parts: list[tuple[str, float]] = []
    for name, usual in ordinary.items():
        value = given.get(name)
        if value is None or usual.low <= value <= usual.high:
            continue
        beyond = value - usual.high if value > usual.high else usual.low - value
        excess = min(beyond / usual.scale, MOST_EXCESS)
        part = usual.weight * (excess * excess)
        odds += part
        parts.append((name, part))
    parts.sort(key=lambda each: -each[1])
    return Score(odds / (1.0 + odds), dict(parts))


def for_kind(model: TelemetryModel, kind: str) -> str:
    """Return what a device of a kind needs of a model to score by itself, as JSON."""
    kinds = {kind: model.kinds[kind]} if kind in model.kinds else {}
    part = TelemetryModel(kinds, model.threshold, model.certain)
    return msgspec.json.encode(part).decode()


def check(model: TelemetryModel) -> None:
    """Raise a ValueError for a model that makes no sense."""
    if not 0 < model.threshold <= model.certain < 1:
        raise ValueError("0 < threshold <= certain < 1 does not hold")
    for kind, ordinary in model.kinds.items():
        if list(ordinary) != sorted(ordinary):
            raise ValueError(f"the features of {kind!r} are not in the order of their names")
        for name, usual in ordinary.items():
            numbers = (usual.low, usual.high, usual.scale, usual.weight)
            if not all(map(isfinite, numbers)) or usual.low > usual.high:
                raise ValueError(f"{name} of {kind!r} has no range")
            if usual.scale <= 0 or usual.weight < 0:
                raise ValueError(f"{name} of {kind!r} has no scale or a negative weight")
