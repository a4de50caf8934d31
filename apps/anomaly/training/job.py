"""Training in Spark: from all samples, archived and recent, now and then and when drift asks.

The newest fifth of the time is held back. On what is before it, families of models are fitted from
scratch, over all of it and over its recent part, and the model in service is updated. All are then
compared, the one in service among them, with one query: how many of the held-back samples each
would flag, and how many disturbed ones it would miss. The best is published if it is no worse than
the one in service, and the decision is recorded either way.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from apps.anomaly.application import app, decisions, drift_alarms, model_versions, samples
from apps.anomaly.records import Decision
from apps.anomaly.scoring import MODEL, TelemetryModel, check
from apps.anomaly.training.families import (
    FAMILIES,
    NORMAL_QUARTILES,
    THRESHOLD,
    Summary,
    model_of,
    updated,
)
from apps.anomaly.training.learning import OUTERMOST, with_references
from apps.anomaly.training.sparkscore import SCORE, ranges_of, score_text
from penstock.jobs import JobRun
from penstock.models import Models, ModelVersion, Served, sealed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["archive", "train"]

ENOUGH = 1_000
"""Fewer samples are not trained on."""
HELD_BACK, RECENT = 0.8, 0.6
"""Where held-back samples begin, and recent ones, between the first sample and the last."""
FEW = 0.05
"""If a smaller share is anomalous, it is left out; if a larger one, the world has changed."""
ANOMALOUS = f"(score is not null and score > {THRESHOLD})"
FLAG_COSTS = 20.0
"""A sample that is flagged for nothing costs as much as so many that are missed."""
DISTURBED = 8.0
"""By so many standard deviations a level is disturbed."""
REFERENCES = 5_000
"""From so many samples, the newest, it is learnt how values were in training."""
IN_SERVICE = "in service"
COLUMNS = ("kind", "device", "number", "at", "features", "score")

archive = app.archive(samples, every="10s")


@app.job(
    reads=(archive.then_live, model_versions),
    writes=(model_versions, decisions),
    every="10m",
    asked_by=drift_alarms,
    rest="20s",
)
def train(
    samples: DataFrame, versions: DataFrame, *, run: JobRun
) -> Iterator[ModelVersion | Decision]:
    """Train, compare, and publish if it is no worse; give the decision."""
    began_at = time.monotonic()
    known = [ModelVersion(**row.asDict()) for row in versions.where(f"model = '{MODEL}'").collect()]
    served = Models(MODEL, TelemetryModel, check=check).newest(known)
    rows = samples.where(f"model = '{MODEL}'").select(*COLUMNS).cache()
    try:
        found = _compare(rows, served)
        if found is None:
            return
        candidates, judged, count, (held, held_from) = found
        newest = rows.orderBy("at", ascending=False).limit(REFERENCES).collect()
    finally:
        rows.unpersist()
    chosen = min((name for name in candidates if name != IN_SERVICE), key=judged.loss)
    publish = served is None or judged.loss(chosen) <= judged.loss(IN_SERVICE)
    number = max((row.version for row in known), default=0) + 1
    if publish:
        model = with_references(candidates[chosen], [(row.kind, row.features) for row in newest])
        figures = {
            "loss": judged.loss(chosen),
            "flagged": judged.flagged[chosen],
            "missed": judged.missed[chosen],
            "samples": float(count),
        }
        read = f"{chosen}, {run.read_text}"
        yield sealed(
            MODEL, number, model, trained_on=read, figures=figures, published_at=run.started_at
        )
    yield Decision(
        model=MODEL,
        at=run.started_at,
        asked=run.asked,
        published=number if publish else 0,
        in_service=0 if served is None else served.version,
        chosen=chosen,
        losses={name: judged.loss(name) for name in candidates},
        flagged=judged.flagged,
        missed=judged.missed,
        samples=count,
        held_back=held,
        held_back_from=held_from,
        read=run.read_text,
        seconds=round(time.monotonic() - began_at, 3),
    )


class _Judged(msgspec.Struct):
    """What each candidate makes of held-back time."""

    flagged: dict[str, float]
    missed: dict[str, float]

    def loss(self, name: str) -> float:
        """Return how bad a candidate is."""
        return self.missed[name] + FLAG_COSTS * self.flagged[name]


def _compare(rows: DataFrame, served: Served[TelemetryModel] | None) -> Any:
    """Fit all candidates and judge them; None: there is too little to learn from."""
    from pyspark.sql import functions as f

    seconds = f.col("at").cast("double")
    shares = f.avg(f.expr(f"double({ANOMALOUS})"))
    span = rows.agg(f.min(seconds), f.max(seconds), f.count("*"), shares).collect()
    first, last, count, marked = span[0]
    if count < ENOUGH or first == last:
        return None
    if (marked or 0.0) < FEW:
        rows = rows.where(f"not {ANOMALOUS}")
    held_from, recent_from = (first + share * (last - first) for share in (HELD_BACK, RECENT))
    past, held = rows.where(seconds < held_from), rows.where(seconds >= held_from)
    summaries = _summaries(past, recent=seconds >= recent_from)
    candidates = {
        f"{name} of {span}": model_of(family, summaries[span])
        for span in sorted(summaries)
        for name, family in FAMILIES.items()
    }
    if served is not None:
        candidates[IN_SERVICE] = served.parameters
        candidates["update by recent"] = updated(served.parameters, summaries["recent"])
    judged = _judge(held, candidates, summaries["all"] | summaries["recent"])
    [(begins, kept)] = held.agg(f.min(seconds), f.count("*")).collect()
    if judged is None or begins is None:
        return None
    return candidates, judged, count, (kept, datetime.fromtimestamp(begins, UTC))


def _summaries(past: DataFrame, *, recent: Any) -> dict[str, dict[str, dict[str, Summary]]]:
    """Return what values there were of each feature of each kind, of all and of recent time."""
    values = past.withColumn("recent", recent).selectExpr(
        "kind", "recent", "explode(features) as (name, value)"
    )
    places = f"array({OUTERMOST}, 0.25, 0.5, 0.75, {1 - OUTERMOST})"
    summary = (f"percentile(value, {places})", "avg(value)", "stddev_pop(value)")
    found: dict[str, dict[str, dict[str, Summary]]] = {
        span: defaultdict(dict) for span in ("all", "recent")
    }
    for span, chosen in (("all", values), ("recent", values.where("recent"))):
        grouped = chosen.groupBy("kind", "name")
        for kind, name, cuts, mean, deviation in grouped.agg(*_expressions(summary)).collect():
            low, quarter, middle, three, high = cuts
            found[span][kind][name] = Summary(low, quarter, middle, three, high, mean, deviation)
    return found


def _judge(
    held: DataFrame, candidates: dict[str, TelemetryModel], usual: dict[str, dict[str, Summary]]
) -> _Judged | None:
    """Return what each candidate makes of held-back samples, as they are and disturbed.

    Of each sample one level is disturbed, another one from sample to sample.
    """
    spark = held.sparkSession
    levels = [
        (kind, [(name, DISTURBED * _spread(each)) for name, each in sorted(features.items())])
        for kind, features in usual.items()
    ]
    by = spark.createDataFrame(levels, "kind string, by array<struct<name: string, by: double>>")
    moved = (
        "transform_values(features, (name, value) -> if(name = one.name, value + one.by, value))"
    )
    disturbed = (
        held.join(by, "kind")
        .selectExpr("*", "filter(by, each -> each.name like '%.level') as levels")
        .selectExpr("*", "element_at(levels, 1 + pmod(hash(device, number), size(levels))) as one")
        .selectExpr("kind", "features", f"{moved} as moved")
    )
    found = (
        disturbed.join(ranges_of(spark, candidates), "kind")
        .selectExpr(
            "candidate",
            f"{SCORE} > threshold as flagged",
            f"{score_text('moved')} > threshold as seen",
        )
        .groupBy("candidate")
        .agg(*_expressions(("avg(int(flagged))", "1 - avg(int(seen))")))
        .collect()
    )
    if {row[0] for row in found} != set(candidates):
        return None
    return _Judged({row[0]: row[1] for row in found}, {row[0]: row[2] for row in found})


def _spread(values: Summary) -> float:
    """Return a standard deviation that a few values far away do not change."""
    return max((values.three_quarters - values.quarter) / NORMAL_QUARTILES, 1e-3)


def _expressions(texts: Iterable[str]) -> list[Any]:
    from pyspark.sql import functions as f

    return [f.expr(text) for text in texts]
