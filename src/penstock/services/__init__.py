"""Services: one record at a time, with state, exactly once.

===========  ==========================================================================
step         the heart: one record in, its outputs out; pure
outputs      what a function gives, made ready to send
shelf        state on a local disk; shelved: the values of one state there; saving: what it lacks
standby      copies of the state that other workers have; disk: both, for one worker
calls        the user's function or class, with what it asks for given
states       the states of one task; cells: the values of one; statecodec: them as bytes
timerqueue   the timers of one task; eventtime: how far event time has come
reactions    what is done about failures; deadletters: where what cannot be used goes; blame: words
tally        the counts of one task
asyncstep    the same for a service that is awaited
panestep     the same for a windowed aggregation; panestate: its records
kinds        which kind of step runs a service
task         one share of a service: handle, commit; what makes it durable is a seam
delivery     exactly once, at least once and at most once, on Kafka
takeover     fence, find the place, restore the state
assignment   which shares a worker has, and how far each has come
worker       a member of the group: the loop; pace: when it commits
reset        a service taken back to its beginning
reporter     what a service says about itself
measures     what a worker measures of itself
engine       runs services of an application, each in a thread
===========  ==========================================================================

Everything above ``delivery`` knows nothing of the Kafka client: the test driver runs it too.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.backbone.site import Site
    from penstock.core.graph import Graph

__all__ = ["run"]


def run(graph: "Graph", names: Sequence[str], site: "Site") -> None:
    """Run services until ``site.stop`` is set; see ``engine.run_services``."""
    # Imported here: the test driver imports this package and must not need the Kafka client.
    from penstock.services.engine import run_services

    run_services(graph, names, site)
