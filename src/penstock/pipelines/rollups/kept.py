"""What a checkpoint of an aggregation was made by, kept beside it and compared at every start."""

import json

from pyspark.sql import SparkSession

from penstock.core.rollup.declaration import declaration_of, refuse_changed
from penstock.core.rollup.resolve import Rollup
from penstock.pipelines.checkpoint import Files
from penstock.pipelines.session import shuffle_partitions

__all__ = ["kept_buckets"]

_FILE = "penstock.json"


def kept_buckets(
    spark: SparkSession, checkpoint: str, name: str, rollup: Rollup, *, native: bool
) -> int:
    """Return into how many buckets the state of this checkpoint is cut, for as long as it lives.

    ConfigurationError where the checkpoint was made by another declaration, or another way of
    computing it: nothing is touched.
    """
    files = Files(spark)
    declaration = declaration_of(rollup) | {"way": "native" if native else "panes"}
    if _FILE not in files.names(checkpoint):
        buckets = shuffle_partitions(spark)
        made = {"declaration": declaration, "buckets": buckets}
        files.write(f"{checkpoint}/{_FILE}", json.dumps(made, indent=1))
        return buckets
    found = json.loads(files.text(f"{checkpoint}/{_FILE}"))
    hint = f"give it a new name, or delete {checkpoint} to compute it anew from the log"
    refuse_changed(name, found["declaration"], declaration, hint=hint)
    return int(found["buckets"])
