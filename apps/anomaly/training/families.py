"""Families of models: ways to say what is ordinary, all of one shape; pure.

Each makes a range from a summary of the values of a feature. So all are scored by the same code,
and what differs is only how they are learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from apps.anomaly.scoring import Ordinary, TelemetryModel
from apps.anomaly.trend import MOST_STILL

__all__ = ["FAMILIES", "NORMAL_QUARTILES", "THRESHOLD", "Summary", "model_of", "updated"]

THRESHOLD, CERTAIN = 0.5, 0.98
LEAST_SHARE, LEAST = 0.05, 1e-3
"""A scale is never less than this share of the middle value, nor less than this."""
DEVIATIONS, ROBUST = 4.0, 5.0
"""How many standard deviations around the mean, or the median, are ordinary."""
NORMAL_QUARTILES = 1.349
"""The quartiles of a normal distribution are so many standard deviations apart."""
STILL, STANDS = ".still", 8.0
"""How features are called of what stands still, and how far outside it is at the end."""
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
            old = known.get(name)
            if old is not None and not name.endswith(STILL):
                low = old.low + FOLLOWS * (low - old.low)
                high = old.high + FOLLOWS * (high - old.high)
            known[name] = ordinary(name, low, high, each)
    return _model(kinds)


def ordinary(name: str, low: float, high: float, values: Summary) -> Ordinary:
    """Return the range of a feature, with the unit in which the distance from it counts."""
    if name.endswith(STILL):
        return _standing(high)
    scale = max((high - low) / 2, LEAST_SHARE * abs(values.middle), LEAST)
    return Ordinary(low, high, scale, weight=1.0)


def _standing(longest: float) -> Ordinary:
    """Return the range of how many equal values come in a row; that they change is never unusual.

    If so many come by chance once in a thousand times, twice as many come once in a million times.
    A device that measures five times a second does that every two days. What stands still as long
    as is counted is certain, whatever the range is, unless that is ordinary.
    """
    high = 2 * max(longest, 0.0) + 1
    if high >= MOST_STILL / 2:
        return Ordinary(0.0, MOST_STILL, 1.0, weight=1.0)
    return Ordinary(0.0, high, (MOST_STILL - high) / STANDS, weight=1.0)


def _model(kinds: Mapping[str, Mapping[str, Ordinary]]) -> TelemetryModel:
    by_name = {
        kind: {name: features[name] for name in sorted(features)}
        for kind, features in sorted(kinds.items())
    }
    return TelemetryModel(by_name, threshold=THRESHOLD, certain=CERTAIN)
