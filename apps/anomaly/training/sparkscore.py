"""The score once more, as an expression of Spark SQL: the same parameters, the same bits.

``SCORE`` is over two columns: ``features``, and ``ranges``, the ranges of one kind of device in the
order of their names. It adds, multiplies and compares in the same order as
``apps.anomaly.scoring.score``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from apps.anomaly.scoring import MOST_EXCESS, TelemetryModel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RANGES", "SCORE", "ranges_of", "score_text"]

RANGES = "array<struct<name: string, low: double, high: double, scale: double, weight: double>>"
"""The type of the column ``ranges``."""


def score_text(features: str) -> str:
    """Return the score of a column of features; null where there are no ranges for the kind."""
    value = f"{features}[r.name]"
    beyond = f"if({value} > r.high, {value} - r.high, r.low - {value})"
    excess = f"least({beyond} / r.scale, {MOST_EXCESS!r}D)"
    part = (
        f"if({value} is null or {value} between r.low and r.high, 0D, "
        f"r.weight * ({excess} * {excess}))"
    )
    return f"aggregate(ranges, 0D, (odds, r) -> odds + {part}, odds -> odds / (1D + odds))"


SCORE = score_text("features")


def ranges_of(spark: SparkSession, models: Mapping[str, TelemetryModel]) -> DataFrame:
    """Return a small frame: of each model (``candidate``) the ranges of each kind.

    A kind that a model does not know, and another one does, has no ranges: it scores 0.
    """
    kinds = sorted({kind for model in models.values() for kind in model.kinds})
    rows = [
        (
            name,
            model.threshold,
            kind,
            [
                (f, each.low, each.high, each.scale, each.weight)
                for f, each in model.kinds.get(kind, {}).items()
            ],
        )
        for name, model in models.items()
        for kind in kinds
    ]
    return spark.createDataFrame(
        rows, f"candidate string, threshold double, kind string, ranges {RANGES}"
    )
