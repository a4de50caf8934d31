"""Audit: everything that was found, and every version of every model, in the lake for good.

``anomalies.archive`` and ``samples.archive`` have what was scored, with features, score and
version; ``model_audit`` has the versions, with parameters, hash, and what they were trained on. So
any score in them can be computed once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apps.anomaly.application import anomalies, app, model_versions
from penstock import micro_batch
from penstock.models import ModelVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["anomalies_archive", "keep_versions", "model_audit"]

anomalies_archive = app.archive(anomalies, every="5s")
model_audit = app.lake("model_audit", ModelVersion)


@app.pipeline(reads=model_versions, writes=model_audit, trigger=micro_batch(every="5s"))
def keep_versions(versions: DataFrame) -> DataFrame:
    """Keep each version, as it was published."""
    return versions
