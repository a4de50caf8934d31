"""Finds patterns of usage in Spark: K-means over what each device is like, with MLlib.

A device is the mean of its levels. How many patterns a kind has is searched: each number is judged
by its silhouette on the older four fifths of the time. The newest fifth is held back: what was
found is published if it describes that clearly better than the patterns in service do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from apps.anomaly.application import app, model_versions
from apps.anomaly.scoring import MODEL as TELEMETRY
from apps.anomaly.training.job import archive
from apps.anomaly.usage.patterns import MODEL, Kind, Usage, check
from penstock.jobs import JobRun
from penstock.models import Models, ModelVersion, sealed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["learn_usage"]

ENOUGH = 8
"""A kind with fewer devices has no patterns."""
MOST_KINDS = 20
NUMBERS = (2, 3, 4)
"""So many patterns are tried; one, if none of them is any good."""
GOOD = 0.4
"""The silhouette from which on patterns are told apart."""
HELD_BACK = 0.8
BETTER = 0.95
"""Patterns take over if their loss is below this share of the loss of those in service."""
LEAST_SCALE = 1e-3


@app.job(reads=(archive.then_live, model_versions), writes=model_versions, every="10m")
def learn_usage(samples: DataFrame, versions: DataFrame, *, run: JobRun) -> ModelVersion | None:
    """Find the patterns of each kind; publish them if they are better than those in service."""
    known = [ModelVersion(**row.asDict()) for row in versions.where(f"model = '{MODEL}'").collect()]
    served = Models(MODEL, Usage, check=check).newest(known)
    past, held = _devices(samples)
    kinds: dict[str, Kind] = {}
    figures: dict[str, float] = {}
    many = past.groupBy("kind").count().orderBy("count", ascending=False).limit(MOST_KINDS)
    for name in sorted(row.kind for row in many.collect() if row["count"] >= ENOUGH):
        found = _patterns(past.where(past.kind == name), figures, name)
        if found is not None:
            kinds[name] = found
    usage = Usage(kinds)
    loss = _loss(held, usage, usage)
    if not kinds or loss is None:
        return None
    figures["loss"] = loss
    before = None if served is None else _loss(held, served.parameters, usage)
    if before is not None and loss >= BETTER * before:
        return None
    number = max((row.version for row in known), default=0) + 1
    return sealed(
        MODEL,
        number,
        usage,
        trained_on=f"usage of devices, {run.read_text}",
        figures=figures,
        published_at=run.started_at,
    )


def _devices(samples: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return what each device was like before, and in the time that is held back."""
    from pyspark.sql import functions as f

    rows = samples.where(f"model = '{TELEMETRY}'")
    seconds = f.col("at").cast("double")
    [(first, last)] = rows.agg(f.min(seconds), f.max(seconds)).collect()
    ends = 0.0 if first is None else first + HELD_BACK * (last - first)
    levels = (
        rows.select("kind", "device", (seconds >= ends).alias("held"), f.explode("features"))
        .where("key like '%.level'")
        .groupBy("kind", "device", "held", "key")
        .agg(f.avg("value").alias("value"))
        .groupBy("kind", "device", "held")
        .agg(f.expr("map_from_entries(collect_list(struct(key, value)))").alias("levels"))
        .cache()
    )
    return levels.where("not held"), levels.where("held")


def _patterns(devices: DataFrame, figures: dict[str, float], name: str) -> Kind | None:
    """Return the patterns of one kind, and note what was tried."""
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.evaluation import ClusteringEvaluator
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions as f

    count = devices.count()
    spread = (
        devices.select(f.explode("levels"))
        .groupBy("key")
        .agg(f.avg("value").alias("mean"), f.stddev_pop("value").alias("scale"), f.count("*"))
        .where(f"`count(1)` = {count}")
        .orderBy("key")
        .collect()
    )
    if not spread:
        return None
    names = [row.key for row in spread]
    means = [row.mean for row in spread]
    scales = [max(row.scale, LEAST_SCALE, LEAST_SCALE * abs(row.mean)) for row in spread]
    vectors = devices.select(array_to_vector(_place(names, means, scales)).alias("features"))
    vectors = vectors.cache()
    best, centres, shares = GOOD, [[0.0] * len(names)], [1.0]
    for number in (each for each in NUMBERS if each * 2 <= count):
        fitted = KMeans(k=number, seed=1, maxIter=20).fit(vectors)
        if fitted.summary.k < number or min(fitted.summary.clusterSizes) == 0:
            continue
        judged = ClusteringEvaluator().evaluate(fitted.transform(vectors))
        figures[f"silhouette of {number} in {name}"] = judged
        if judged > best:
            sizes = [size / count for size in fitted.summary.clusterSizes]
            ordered = sorted(zip(sizes, fitted.clusterCenters(), strict=True), key=_by_size)
            best = judged
            centres = [[float(value) for value in centre] for _, centre in ordered]
            shares = [size for size, _ in ordered]
    vectors.unpersist()
    return Kind(names, means, scales, centres, shares)


def _by_size(each: tuple[float, Any]) -> tuple[float, list[float]]:
    return -each[0], list(each[1])


def _place(names: Sequence[str], means: Sequence[float], scales: Sequence[float]) -> Column:
    """Return where a device is, in units in which all levels count the same."""
    from pyspark.sql import functions as f

    levels = f.col("levels")
    rows = zip(names, means, scales, strict=True)
    return f.array(*((levels[name] - mean) / scale for name, mean, scale in rows))


def _loss(devices: DataFrame, usage: Usage, units: Usage) -> float | None:
    """Return how far devices are from the nearest pattern, squared, in the units of a model."""
    from pyspark.sql import functions as f

    total, count = 0.0, 0
    for name, unit in units.kinds.items():
        kind = usage.kinds.get(name)
        if kind is None or not set(unit.levels) <= set(kind.levels):
            return None
        columns = [kind.levels.index(level) for level in unit.levels]
        away = []
        for centre in kind.centres:
            there = [kind.means[at] + kind.scales[at] * centre[at] for at in columns]
            place = _place(unit.levels, there, unit.scales)
            away.append(f.aggregate(place, f.lit(0.0), lambda sum_, x: sum_ + x * x))
        nearest = away[0] if len(away) == 1 else f.least(*away)
        mine = devices.where(devices.kind == name)
        [(part, seen)] = mine.agg(f.sum(nearest), f.count(nearest)).collect()
        total, count = total + (part or 0.0), count + seen
    return total / count if count else None
