"""Find the writers of a lake table, and check that the checkpoint of a pipeline still fits it.

Delta takes each batch of a query once. It knows the query by an id in the checkpoint, and the batch
by its number. So what a table holds and what a checkpoint says belong together.
"""

import json
from typing import Any

from pyspark.sql import SparkSession

from penstock.core.graph.data import Lake
from penstock.core.graph.parts import Pipeline
from penstock.errors import ConfigurationError
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.lake.snapshot import Snapshot
from penstock.pipelines.lake.table import table_exists

__all__ = ["NO_MORE", "refuse_other_checkpoint"]

NO_MORE = 1 << 62
"""The last batch of a query that a rebuild has put an end to: none of its rows is there."""

_METADATA = "metadata"
"""Where Spark keeps the id of a query."""
_WAYS_OUT = "put the checkpoint back, declare a table of another name, or move this one away"


def refuse_other_checkpoint(
    spark: SparkSession, pipeline: Pipeline, data: Lake[Any], path: str, *, checkpoint: str
) -> None:
    """Refuse a checkpoint that would duplicate or lose rows of a table, before anything is written.

    - ``lake.second-beginning``: it is new, and the table has rows of a query whose checkpoint is
      nowhere in the directory of checkpoints. Started again, it would add its whole input a second
      time.
    - ``lake.older-checkpoint``: the table is ahead of it. Delta would mistake its next batches for
      batches that it already has, and drop them.
    """
    if pipeline.output == "complete" or not table_exists(spark, path):
        return
    files, writers = Files(spark), Snapshot(spark, path).writers
    query = _query_of(files, checkpoint)
    if query is None:
        known = _known(files, checkpoint.rsplit("/", 2)[0])
        present = {each for each, batch in writers.items() if batch < NO_MORE}
        if lost := sorted(present - known):
            raise ConfigurationError(
                f"lake table {data.name!r} holds rows of a query whose checkpoint is missing",
                code="lake.second-beginning",
                detail=f"{pipeline.name!r} has none, would start again and add them twice; "
                f"lost: {', '.join(lost)}",
                hint=_WAYS_OUT,
            )
        return
    batches = [int(each) for each in files.names(f"{checkpoint}/offsets") if each.isdecimal()]
    last = max(batches, default=-1)
    if writers.get(query, -1) > last:
        raise ConfigurationError(
            f"lake table {data.name!r} is ahead of the checkpoint of {pipeline.name!r}",
            code="lake.older-checkpoint",
            detail=f"it holds batch {writers[query]}, the checkpoint only {last}: an older copy?",
            hint=_WAYS_OUT,
        )


def _known(files: Files, root: str) -> set[str]:
    """Return the ids of all queries that have a checkpoint."""
    apps = [f"{root}/{app}" for app in files.names(root)]
    places = [f"{app}/{each}" for app in apps for each in files.names(app)]
    return {query for place in places if (query := _query_of(files, place)) is not None}


def _query_of(files: Files, checkpoint: str) -> str | None:
    """Return the id of the query that a checkpoint is of; None: none has begun."""
    if _METADATA not in files.names(checkpoint):
        return None
    return str(json.loads(files.text(f"{checkpoint}/{_METADATA}"))["id"])
