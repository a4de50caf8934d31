"""Families of models: ways to say what is ordinary, all of one shape; pure.

Each makes a range from a summary of the values of a feature. So all are scored by the same code,
and what differs is only how they are learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from apps.anomaly.scoring import MOST_STILL, Ordinary, TelemetryModel

__all__ = ["FAMILIES", "NORMAL_QUARTILES", "THRESHOLD", "Summary", "model_of", "updated"]

THRESHOLD, CERTAIN = 0.5, 0.98
LEAST_SHARE, LEAST = 0.05, 1e-3
"""A scale is never less than this share of the middle value, nor less than this."""
DEVIATIONS, ROBUST = 4.0, 5.0
"""How many standard deviations around the mean, or the median, are ordinary."""
NORMAL_QUARTILES = 1.349
"""The quartiles of a normal distribution are so many standard deviations apart."""
FOLLOWS = 0.5
"""How far an update goes from the range in use towards that of the recent past."""


class Summary(msgspec.Struct, frozen=True):
    """The values of a feature in a few numbers."""

    lowest: float
    """A thousandth of the values is below it..."""
    quarter: float
    middle: float
    three_quarters: float
    highest: float
    """... and a thousandth above this one."""
    mean: float
    deviation: float


Family = Callable[[Summary], tuple[float, float]]


def quantiles(values: Summary) -> tuple[float, float]:
    """Take all but the outermost thousandth on each side for ordinary."""
    return values.lowest, values.highest


def moments(values: Summary) -> tuple[float, float]:
    """Take what is near the mean for ordinary, as if values were normally distributed."""
    beyond = DEVIATIONS * values.deviation
    return values.mean - beyond, values.mean + beyond


def medians(values: Summary) -> tuple[float, float]:
    """Take what is near the median for ordinary; a few values far away do not change it."""
    beyond = ROBUST * (values.three_quarters - values.quarter) / NORMAL_QUARTILES
    return values.middle - beyond, values.middle + beyond


FAMILIES: dict[str, Family] = {each.__name__: each for each in (medians, moments, quantiles)}

Summaries = Mapping[str, Mapping[str, Summary]]
"""By kind of device and name of feature."""


def model_of(family: Family, found: Summaries) -> TelemetryModel:
    """Return the model of a family from scratch."""
    return _model(
        {
            kind: {name: ordinary(name, *family(each), each) for name, each in features.items()}
            for kind, features in found.items()
        }
    )


def updated(before: TelemetryModel, recent: Summaries) -> TelemetryModel:
    """Return a model that has moved towards the recent past, and knows what is new there."""
    kinds = {kind: dict(features) for kind, features in before.kinds.items()}
    for kind, features in recent.items():
        known = kinds.setdefault(kind, {})
        for name, each in features.items():
            low, high = quantiles(each)
            if (old := known.get(name)) is not None:
                low = old.low + FOLLOWS * (low - old.low)
                high = old.high + FOLLOWS * (high - old.high)
            known[name] = ordinary(name, low, high, each)
    return _model(kinds)


def ordinary(name: str, low: float, high: float, values: Summary) -> Ordinary:
    """Return the range of a feature, with the unit in which the distance from it counts."""
    if name.endswith(".still"):
        low = 0.0  # that a value changes is never unusual
        high = float(MOST_STILL) if high >= MOST_STILL / 2 else high
    scale = max((high - low) / 2, LEAST_SHARE * abs(values.middle), LEAST)
    return Ordinary(low, high, scale if low or high else 1.0, weight=1.0)


def _model(kinds: Mapping[str, Mapping[str, Ordinary]]) -> TelemetryModel:
    by_name = {
        kind: {name: features[name] for name in sorted(features)}
        for kind, features in sorted(kinds.items())
    }
    return TelemetryModel(by_name, threshold=THRESHOLD, certain=CERTAIN)
