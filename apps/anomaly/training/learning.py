"""A first model of telemetry, learnt from the stream itself: what most of it looks like.

It is what the application begins with, while Spark has not trained a better one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, pstdev

from apps.anomaly.scoring import TelemetryModel, score
from apps.anomaly.training.families import Summary, model_of, quantiles
from penstock.models import Reference, reference_of

__all__ = ["MOST_KINDS", "OUTERMOST", "learn", "with_references"]

OUTERMOST = 0.001
"""This share of the values on each side is not taken for ordinary."""
MOST_KINDS = 50
"""A model knows so many kinds of devices, those with the most samples."""
SOMETHING = 0.01
"""A score below it is nothing."""

Samples = Sequence[tuple[str, Mapping[str, float]]]
"""Of each the kind of device, and the features."""


def learn(samples: Samples) -> TelemetryModel:
    """Return what is ordinary for each kind of device, from the features of its measurements."""
    found = {
        kind: {name: _summary(values) for name, values in features.items()}
        for kind, features in _columns(samples).items()
    }
    return with_references(model_of(quantiles, found), samples)


def with_references(model: TelemetryModel, samples: Samples) -> TelemetryModel:
    """Return the model with how features and scores were in training, to tell when they drift."""
    columns = _columns(samples)
    scores: dict[str, list[float]] = defaultdict(list)
    for kind, features in samples:
        if (found := score(model, kind, features)) is not None:
            scores[kind].append(found.value)
    return TelemetryModel(
        kinds=model.kinds,
        threshold=model.threshold,
        certain=model.certain,
        references={
            kind: {name: reference_of(values) for name, values in sorted(features.items())}
            for kind, features in sorted(columns.items())
            if kind in model.kinds
        },
        scores={kind: _of_scores(values, model) for kind, values in sorted(scores.items())},
    )


def _of_scores(values: list[float], model: TelemetryModel) -> Reference:
    """Return how many scores were nothing, something, anomalous, and beyond doubt.

    Nearly all scores are 0, so parts of equal size would be one part.
    """
    bounds = [SOMETHING, model.threshold, model.certain]
    counts = [0] * (len(bounds) + 1)
    for value in values:
        counts[bisect_right(bounds, value)] += 1
    return Reference(bounds, [count / len(values) for count in counts])


def _columns(
    samples: Iterable[tuple[str, Mapping[str, float]]],
) -> dict[str, dict[str, list[float]]]:
    given = list(samples)
    kinds = {kind for kind, _ in Counter(kind for kind, _ in given).most_common(MOST_KINDS)}
    found: dict[str, dict[str, list[float]]] = {kind: defaultdict(list) for kind in kinds}
    for kind, features in given:
        if kind in kinds:
            for name, value in features.items():
                found[kind][name].append(value)
    return found


def _summary(values: list[float]) -> Summary:
    ordered = sorted(values)
    last = len(ordered) - 1
    cut = int(OUTERMOST * len(ordered))
    return Summary(
        lowest=ordered[cut],
        quarter=ordered[last // 4],
        middle=ordered[last // 2],
        three_quarters=ordered[last * 3 // 4],
        highest=ordered[last - cut],
        mean=fmean(ordered),
        deviation=pstdev(ordered),
    )
