"""Pipelines on Spark: the only importer of PySpark, and only when something runs.

===========  =====================================================================================
query        read-only SQL over topics and the lake
rebuild      recompute a pipeline beside the running one, and replace it
execution    a pipeline that runs: as a stream that is kept going, or over a finished range
jobs         functions over all there is, again and again, that give a few records
lookups      tables beside a stream: only the rows that a batch asks for are read
program      what made a checkpoint, and whether the program of today may go on with it
operators    joins, patterns, derived streams: machines in Spark's state
rollups      windowed aggregations: Spark's own windows, or the pane machine
history      archives of streams, read before the log
sink         rows to topics and lake tables, exactly once
lake         Delta tables: made, described, kept in shape
gate         rows of a topic to records, bad rows to dead letters
checkpoint   what the checkpoint and the progress of a query say
spark        the session, its errors, its types, its SQL
===========  =====================================================================================

Each room imports only from those below it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.backbone.site import Site
    from penstock.core.graph.graph import Graph

__all__ = ["run"]


def run(graph: "Graph", names: Sequence[str], site: "Site") -> None:
    """Run pipelines until ``site.stop`` is set; see ``penstock.pipelines.execution.engine``."""
    from penstock.pipelines.execution.engine import run_pipelines

    run_pipelines(graph, names, site)
