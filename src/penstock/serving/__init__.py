"""Serving: one door over HTTP. Records in, questions to running state out.

===========  =====================================================================================
engine       runs a gateway until it is told to stop
application  the ASGI application: which path leads where
describe     what a gateway says of itself: OpenAPI, from the graph and the record types
records      records in: parsed, written, acknowledged; each request once
lookups      questions out: rows of tables, values of states
owners       asks the workers that own the state
meter        what a gateway counts and reports
http         callers, refusals, and the limits of connections, heads and bodies
===========  =====================================================================================

Each room imports only from those below it. It is a sibling of services: a gateway knows the state
of a service only by what the service's workers answer.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.backbone.site import Site
    from penstock.core.graph.graph import Graph

__all__ = ["run"]


def run(graph: "Graph", name: str, site: "Site") -> None:
    """Run a gateway until ``site.stop`` is set; see ``engine.run_gateway``."""
    # Imported here: the HTTP server is for whoever runs a gateway, not for every command.
    from penstock.serving.engine import run_gateway

    run_gateway(graph, name, site)
