"""Pipelines on Spark. Importing this imports no Spark; running a pipeline does."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.backbone.site import Site
    from penstock.core.graph import Graph

__all__ = ["run"]


def run(graph: "Graph", names: Sequence[str], site: "Site") -> None:
    """Run pipelines until ``site.stop`` is set; see ``penstock.pipelines.engine``."""
    from penstock.pipelines.engine import run_pipelines

    run_pipelines(graph, names, site)
