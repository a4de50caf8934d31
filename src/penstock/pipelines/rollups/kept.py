"""What a checkpoint of an aggregation was made by, kept beside it and compared at every start."""

import json
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession

from penstock.core.rollup.declaration import changes, declaration_of
from penstock.core.rollup.resolve import Rollup
from penstock.errors import ConfigurationError
from penstock.pipelines.checkpoint import Files

__all__ = ["Kept", "keep"]

_FILE = "penstock.json"
Way = Literal["native", "panes"]


@dataclass(frozen=True, slots=True)
class Kept:
    """How the state is cut, and what computes it; neither changes while a checkpoint lasts."""

    way: Way
    buckets: int


def keep(spark: SparkSession, checkpoint: str, name: str, rollup: Rollup, *, way: Way) -> Kept:
    """Return how the state of this checkpoint is cut; a new one is cut as the session says.

    ConfigurationError where the checkpoint was made by another declaration: nothing is touched.
    """
    files = Files(spark)
    declaration = declaration_of(rollup) | {"way": way}
    if _FILE not in files.names(checkpoint):
        buckets = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        made = {"declaration": declaration, "buckets": buckets}
        files.write(f"{checkpoint}/{_FILE}", json.dumps(made, indent=1))
        return Kept(way, buckets)
    found = json.loads(files.text(f"{checkpoint}/{_FILE}"))
    if different := changes(found["declaration"], declaration):
        raise ConfigurationError(
            f"{name}: the aggregation was changed, its state is that of the old one",
            code="aggregation.changed",
            detail="; ".join(different),
            hint=f"give it a new name, or delete {checkpoint} to compute it anew from the log",
        )
    return Kept(way, found["buckets"])
