"""A first model of telemetry, learnt from the stream itself: what most of it looks like.

It is what the application begins with, while nobody has trained a better one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median

from apps.anomaly.scoring import Ordinary, TelemetryModel

__all__ = ["learn"]

THRESHOLD, CERTAIN = 0.5, 0.9
OUTERMOST = 0.001
"""This share of the values on each side is not taken for ordinary."""
LEAST_SHARE, LEAST = 0.05, 1e-3
"""A scale is never less than this share of the middle value, nor less than this."""


def learn(samples: Iterable[tuple[str, Mapping[str, float]]]) -> TelemetryModel:
    """Return what is ordinary for each kind of device, from the features of its measurements."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for kind, features in samples:
        for name, value in features.items():
            found[kind][name].append(value)
    return TelemetryModel(
        kinds={
            kind: {name: _ordinary(name, values[name]) for name in sorted(values)}
            for kind, values in found.items()
        },
        threshold=THRESHOLD,
        certain=CERTAIN,
    )


def _ordinary(name: str, values: list[float]) -> Ordinary:
    ordered = sorted(values)
    cut = int(OUTERMOST * len(ordered))
    low, high = ordered[cut], ordered[-1 - cut]
    if name.endswith(".still"):
        low = 0.0  # that a value changes is never unusual
    scale = max((high - low) / 2, LEAST_SHARE * abs(median(ordered)), LEAST)
    return Ordinary(low, high, scale if low or high else 1.0, weight=1.0)
