"""What a checkpoint says about who made it: a file beside Spark's own, read before anything else.

=====================  =========================================================================
``penstock.json``      the format, the identity, into how many pieces its batches are cut
without ``format``     format 1, of an aggregation: its declaration, and ``buckets``
``penstock-sink.json`` format 1, of any other pipeline into a topic: ``tasks``, and no identity
no file                new; or of format 1, of a pipeline into the lake or in real-time mode
=====================  =========================================================================
"""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock import __version__
from penstock.core.graph.data import Lake
from penstock.core.graph.parts import Pipeline, RealTime
from penstock.core.rollup.declaration import declaration_of
from penstock.core.wiring.operators import plan_of
from penstock.core.wiring.panes import rollup_of
from penstock.errors import ConfigurationError
from penstock.pipelines.checkpoint.batches import committed_batches, planned_batches
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.program.identity import FORMAT, Identity, refuse
from penstock.pipelines.program.stateful import state_aspects
from penstock.pipelines.rollups.native import why_not_native
from penstock.pipelines.spark.session import shuffle_partitions

__all__ = ["identity_of", "kept_pieces", "kept_size"]

_FILE = "penstock.json"
_SINK_FILE = "penstock-sink.json"


def identity_of(pipeline: Pipeline, spark: SparkSession, frame: DataFrame | None) -> Identity:
    """Return what a pipeline is now; ``frame`` is what its function gives, if it has one."""
    if frame is not None:
        state: dict[str, str] = state_aspects(frame, [data.name for data in pipeline.reads])
    elif pipeline.operator is not None:
        state = dict(plan_of(pipeline).declaration())
    else:
        # Event times before 1970 go through Spark's windows shifted: so does what these hold.
        way = "panes" if why_not_native(pipeline) else "native, from the year 1"
        state = declaration_of(rollup_of(pipeline)) | {"way": way}
    return Identity.of(pipeline, state=state, penstock=__version__, spark=spark.version)


def kept_pieces(spark: SparkSession, checkpoint: str, pipeline: Pipeline, now: Identity) -> int:
    """Return into how many pieces the batches of a checkpoint are cut, for as long as it lives.

    A new checkpoint is marked as this pipeline's. ConfigurationError where it is another's
    (``pipeline.changed``) or cannot be read (``checkpoint.newer``, ``checkpoint.unknown``): nothing
    was touched then.
    """
    files = Files(spark)
    names = files.names(checkpoint)
    if _FILE in names:
        found = _read(files, f"{checkpoint}/{_FILE}")
        _refuse_changed(found, pipeline, now)
        if found.get("format") == FORMAT:
            return int(found["pieces"])
        pieces = int(found["buckets"])
    elif _SINK_FILE in names:
        pieces = int(_read(files, f"{checkpoint}/{_SINK_FILE}")["tasks"])
    else:
        _refuse_unknown(files, checkpoint, pipeline)
        pieces = shuffle_partitions(spark)
    said = {"format": FORMAT, "pieces": pieces} | now.to_json()
    files.write(f"{checkpoint}/{_FILE}", json.dumps(said, indent=1))
    return pieces


def kept_size(files: Files, checkpoint: str) -> int:
    """Return into how many pieces the batches of a checkpoint are cut; 1 where nobody knows."""
    names = files.names(checkpoint)
    for file, name in ((_FILE, "pieces"), (_FILE, "buckets"), (_SINK_FILE, "tasks")):
        if file in names and name in (found := _read(files, f"{checkpoint}/{file}")):
            return int(found[name])
    return 1


def _read(files: Files, file: str) -> Mapping[str, Any]:
    text = files.text(file)
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    raise ConfigurationError(
        f"{file} cannot be read",
        code="checkpoint.unknown",
        detail=f"it begins with {text[:40]!r}",
        hint="restore the file, or delete the checkpoint to compute everything again",
    )


def _refuse_changed(found: Mapping[str, Any], pipeline: Pipeline, now: Identity) -> None:
    form = found.get("format", 1)
    if form not in (1, FORMAT):
        raise ConfigurationError(
            f"{pipeline.name}: its checkpoint was made by Penstock {found.get('penstock')}",
            code="checkpoint.newer",
            detail=f"it has format {form}; this version knows formats up to {FORMAT}",
            hint="use that release, or give the pipeline a new name",
        )
    if form == FORMAT:
        before = Identity.from_json(found)
        changes, made_with = before.changes(now), before.spark
    else:
        changes, made_with = _declared_changes(found["declaration"], now), ""
    refuse(pipeline.name, changes, made_with=made_with, now=now)


def _declared_changes(declaration: Mapping[str, str], now: Identity) -> list[str]:
    """Return what is different from the declaration of format 1, which said nothing else."""
    before = Identity(inputs=now.inputs, output=now.output, mode=now.mode, state=declaration)
    return before.changes(now)


def _refuse_unknown(files: Files, checkpoint: str, pipeline: Pipeline) -> None:
    """Refuse a checkpoint whose next batch is to be cut as before, where nobody knows how."""
    planned, done = planned_batches(files, checkpoint), committed_batches(files, checkpoint)
    if not planned:
        return
    real_time = isinstance(pipeline.trigger, RealTime)
    if pipeline.declared or (
        planned[-1:] != done[-1:] and not real_time and not isinstance(pipeline.writes, Lake)
    ):
        raise ConfigurationError(
            f"{pipeline.name}: {checkpoint} does not say which program made it",
            code="checkpoint.unknown",
            detail=f"it has batches up to {planned[-1]}, but no {_FILE}",
            hint="restore the file, or give the pipeline a new name",
        )
