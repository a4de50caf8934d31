"""The batches that a query has begun and finished, and how far they reach, by its checkpoint."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from penstock.backbone.client.logrecord import Partition
from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph
from penstock.pipelines.checkpoint.files import Files

__all__ = [
    "Offsets",
    "PlannedBatch",
    "checkpoint_at",
    "committed_batches",
    "committed_offsets",
    "interrupted",
    "offsets_of",
    "planned_batch",
    "planned_batches",
    "query_id",
]

Offsets = dict[Partition, int]


def checkpoint_at(graph: Graph, pipeline: str, site: Site) -> str:
    """Return where the progress and state of a pipeline are kept."""
    root = site.settings.spark.checkpoint_dir or str(site.places.checkpoints)
    return f"{root.rstrip('/')}/{graph.app}/{pipeline}"


def committed_offsets(spark: SparkSession, checkpoint: str) -> Offsets:
    """Return the offsets up to which a query has finished; none for a new query.

    Spark writes ``offsets/N`` when it begins batch N and ``commits/N`` when the batch is done.
    """
    files = Files(spark)
    done = committed_batches(files, checkpoint)
    if not done:
        return {}
    return planned_batch(files, checkpoint, done[-1]).end


class PlannedBatch(NamedTuple):
    """What Spark wrote down when it began a batch."""

    end: Offsets
    watermark: int
    """In milliseconds."""


def planned_batch(files: Files, checkpoint: str, batch: int) -> PlannedBatch:
    """Return how far a batch reaches, and the watermark it began with."""
    _, said, *sources = files.text(f"{checkpoint}/offsets/{batch}").splitlines()
    end: Offsets = {}
    for line in sources:
        if line.startswith("{"):
            end |= offsets_of(line)
    return PlannedBatch(end, json.loads(said)["batchWatermarkMs"])


def committed_batches(files: Files, checkpoint: str) -> list[int]:
    """Return the numbers of the finished batches that Spark still remembers, in order."""
    return _numbered(files, f"{checkpoint}/commits")


def interrupted(files: Files, checkpoint: str) -> bool:
    """Return whether a batch was begun and not finished."""
    return planned_batches(files, checkpoint)[-1:] != committed_batches(files, checkpoint)[-1:]


def query_id(files: Files, checkpoint: str) -> str | None:
    """Return the id that Spark gave the query of a checkpoint; None: it was never started."""
    if "metadata" not in files.names(checkpoint):
        return None
    return str(json.loads(files.text(f"{checkpoint}/metadata"))["id"])


def planned_batches(files: Files, checkpoint: str) -> list[int]:
    """Return the numbers of the batches that were begun, as far as Spark remembers, in order."""
    return _numbered(files, f"{checkpoint}/offsets")


def _numbered(files: Files, directory: str) -> list[int]:
    return sorted(int(name) for name in files.names(directory) if name.isdecimal())


def offsets_of(text: str | Mapping[str, Any] | None) -> Offsets:
    """Return the offsets that Spark gives for a Kafka source; empty for anything else."""
    found = json.loads(text) if isinstance(text, str) else text
    if not isinstance(found, Mapping):
        return {}
    return {
        (topic, int(number)): int(offset)
        for topic, partitions in found.items()
        if isinstance(partitions, Mapping)
        for number, offset in partitions.items()
        if number.isdecimal()
    }
