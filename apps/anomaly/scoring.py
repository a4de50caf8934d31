"""The model of telemetry, and the score: the same code in services, on devices and in tests.

``Trend`` remembers the recent past of one device. Its features say what a measurement means after
that past, and ``score`` how unusual this is for a device of its kind. A score is computed by
addition, multiplication and comparison alone, in the order of the names of the features. So any
engine with double precision computes the same, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    "Trend",
    "check",
    "for_kind",
    "score",
]

MODEL = "telemetry"
"""The name of the model among others."""

FAST, SLOW, FADES = 0.2, 0.01, 0.9
"""How much of a new value is in the short mean and in the long one; what is left of a count."""
EARLIEST = 5
"""A device that has just started is not scored before so many measurements."""
MOST_STILL = 20
"""Equal values in a row are counted up to here."""
MOST_METRICS = 64
"""So many metrics of a device are remembered, and scored."""
MOST_EXCESS = 10.0
"""How far outside of the ordinary a feature can be, in units of its scale."""
WARNINGS = ("error", "warning")
"""How log lines begin that are counted."""


@record()
class Metric:
    """The recent past of one metric."""

    short: float
    long: float
    last: float
    still: int = 0

    def after(self, value: float) -> Metric:
        """Return its past with one more value."""
        return Metric(
            short=self.short + FAST * (value - self.short),
            long=self.long + SLOW * (value - self.long),
            last=value,
            still=min(self.still + 1, MOST_STILL) if value == self.last else 0,
        )


@record()
class Trend:
    """The recent past of one device; bounded, whatever comes."""

    metrics: dict[str, Metric] = {}  # noqa: RUF012 - each record has its own
    warnings: float = 0.0
    """Log lines that warn, older ones counted less."""
    started: int = 0
    """When the device started: what was before does not count."""
    count: int = 0

    @property
    def long_enough(self) -> bool:
        """Whether there is enough of a past to score."""
        return self.count >= EARLIEST

    def of(self, started: int) -> Trend:
        """Return this past, or an empty one if the device has started anew."""
        return self if started == self.started else Trend(started=started)

    def after(self, metrics: Mapping[str, float], log: Iterable[str] = ()) -> Trend:
        """Return the past with one more measurement."""
        known = dict(self.metrics)
        for name, value in metrics.items():
            past = known.get(name)
            if past is not None:
                known[name] = past.after(value)
            elif len(known) < MOST_METRICS:
                known[name] = Metric(value, value, value)
        lines = sum(line.startswith(WARNINGS) for line in log)
        warnings = FADES * self.warnings + lines
        return Trend(known, warnings, self.started, min(self.count + 1, EARLIEST))

    def features(self, metrics: Iterable[str]) -> dict[str, float]:
        """Return what the measurement means that came last and had these metrics.

        Of each metric: ``level``, its short mean; ``shift``, how far that is from its long mean;
        ``still``, how many equal values came in a row.
        """
        found: dict[str, float] = {}
        for name in metrics:
            past = self.metrics.get(name)
            if past is not None:
                found[name + ".level"] = past.short
                found[name + ".shift"] = past.short - past.long
                found[name + ".still"] = float(past.still)
        found["log.warnings"] = self.warnings
        return found


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
