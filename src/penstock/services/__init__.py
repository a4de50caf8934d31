"""Services: one record at a time, with state, exactly once.

===========  =====================================================================================
engine       runs services of an application, each in a thread
replay       runs the task of a worker over records of the past
reset        takes a service back to its beginning
door         answers gateways and the command line for the state of this process
scans        scans of state that are held open between two pages
worker       a member of the group: has tasks assigned, runs them, commits; reports
task         one task: is taken over, restored, handles and commits; deliveries, disk, standbys
step         one record in, its outputs out: calls, errors, retries, windows, async
state        what one task remembers: values, timers, event time, positions; memory, disk, changelog
usererrors   words for what went wrong in the user's code
===========  =====================================================================================

Each room imports only from those below it. ``step`` and ``state`` know nothing of the Kafka client:
the test driver runs them too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.backbone.site import Site
    from penstock.core.graph.graph import Graph

__all__ = ["run"]


def run(graph: "Graph", names: Sequence[str], site: "Site") -> None:
    """Run services until ``site.stop`` is set; see ``engine.run_services``."""
    # Imported here: the test driver imports this package and must not need the Kafka client.
    from penstock.services.engine import run_services

    run_services(graph, names, site)
