"""Check that a checkpoint still fits what its pipeline has written to topics.

Spark numbers the batches of a checkpoint, and what was written of a batch is known by that number.
A checkpoint that was deleted, or put back from an older copy, gives numbers that are taken to other
records: to continue would duplicate or drop them. Delta tables have their own check: see
``writers``.
"""

from typing import Any

from penstock.backbone.client.connection import Connection
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.data import OnLog, Stream, Table
from penstock.errors import ConfigurationError
from penstock.pipelines.checkpoint.batches import committed_batches, planned_batches, query_id
from penstock.pipelines.checkpoint.files import Files
from penstock.pipelines.sink.begun import Begun, BegunBatches, fingerprint
from penstock.pipelines.sink.kafkatask import older_checkpoint

__all__ = ["begun_before", "forgotten", "half_written", "plan_of"]


def begun_before(
    files: Files,
    connection: Connection,
    data: OnLog,
    *,
    pipeline: str,
    name: str,
    checkpoint: str,
) -> Begun | None:
    """Return the batch that the query of a checkpoint began last, None if none is known.

    ``name`` is under which the ``pipeline`` writes that down.

    ConfigurationError, and nothing was written then:

    - ``pipeline.second-beginning``: the checkpoint is new, and the stream holds what another one
      has written. Started again, the pipeline would write its whole input a second time.
    - ``pipeline.other-checkpoint``: another checkpoint has written meanwhile.
    - ``pipeline.older-checkpoint``: batches were begun that it does not know, or knows as others.
    """
    begun = BegunBatches(connection).get(name)
    if begun is None or _is_empty(connection, data):
        return None
    query = query_id(files, checkpoint)
    if query is None and isinstance(data, Stream):
        raise _second_beginning(data, begun, pipeline)
    if query is None or (isinstance(data, Table) and _is_new(files, checkpoint, query, begun)):
        return None
    if query != begun.query:
        raise ConfigurationError(
            f"{data.name} was last written with another checkpoint",
            code="pipeline.other-checkpoint",
            detail=f"the last writer was query {begun.query}; this is {query}",
            hint=_ways_out(data, pipeline),
        )
    last = max(planned_batches(files, checkpoint), default=-1)
    if last < begun.batch or (
        last == begun.batch and plan_of(files, checkpoint, last) != begun.plan
    ):
        raise older_checkpoint(data.name, written=begun.batch, known=last, pipeline=pipeline)
    return begun


def plan_of(files: Files, checkpoint: str, batch: int) -> str:
    """Return a fingerprint of a batch as Spark planned it; a repeated one has the same."""
    return fingerprint(files.text(f"{checkpoint}/offsets/{batch}"))


def half_written(topic: str, *, batch: int, tasks: int) -> ConfigurationError:
    """Return the refusal of another program for a batch that an earlier one has written in part."""
    return ConfigurationError(
        f"the program was changed while batch {batch} into {topic} was partly written",
        code="pipeline.half-written",
        detail=f"some of its {tasks} tasks have written their rows and some have not; the new "
        "program would split them differently, lose some and write some twice",
        hint="start the old program, which finishes the batch; then change it. "
        "Or recompute the pipeline: penstock rebuild NAME",
    )


def forgotten(topic: str, *, batch: int) -> ConfigurationError:
    """Return the refusal of a batch of which the cluster has forgotten what was written."""
    return ConfigurationError(
        f"batch {batch} into {topic} was interrupted so long ago that nobody knows which rows "
        "were written",
        code="pipeline.forgotten",
        detail="the cluster has deleted the positions (offsets.retention.minutes)",
        hint="recompute the pipeline: penstock rebuild NAME (--append for a stream)",
    )


def _is_new(files: Files, checkpoint: str, query: str, begun: Begun) -> bool:
    """Whether a query has never written: it was stopped, or failed, before its first batch."""
    return query != begun.query and not committed_batches(files, checkpoint)


def _is_empty(connection: Connection, data: OnLog) -> bool:
    """Whether nothing was ever written: a topic that was deleted and made again begins anew."""
    ends = Topics(connection).ends(data.topic.name)
    return not any(high for _, high in ends.values())


def _second_beginning(data: Stream[Any], begun: Begun, pipeline: str) -> ConfigurationError:
    return ConfigurationError(
        f"stream {data.name!r} holds the output of its pipeline, but the checkpoint is missing",
        code="pipeline.second-beginning",
        detail=f"it would start again and write everything twice; lost: query {begun.query}",
        hint=_ways_out(data, pipeline),
    )


def _ways_out(data: OnLog, pipeline: str) -> str:
    append = " --append" if isinstance(data, Stream) else ""
    return (
        f"put the checkpoint back, or recompute the pipeline: penstock rebuild {pipeline}{append}"
    )
