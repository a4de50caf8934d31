"""Serving: one door over HTTP. Records in, questions to running state out.

===========  =====================================================================================
engine       runs a gateway until it is told to stop: puts its rooms together
desk         serves what a command tells of itself, from a thread: the status page, the console
application  the ASGI application: which path leads where
records      a room: records in, written and acknowledged; each request once
questions    a room: what callers ask the application, and its answers, now or later
live         a room: live queries, over WebSockets, server-sent events and long polling
pages        a room: the pages of the application
lookups      a room: rows of tables and values of states
sql          a room: SQL over tables and states
room         what a room is, and what the rooms of a gateway have in common
relations    tables and states as SQL reads them, and queries within limits
writing      the way onto the log: parsing, one producer, transactions
tables       tables in memory, and the workers that own the states
describe     what a gateway says of itself: OpenAPI, from the graph and the record types
files        the files of a directory, safely
meter        what a gateway counts and reports
listening    where a gateway listens
fixture      what is opened, looked at and closed with a gateway
http         callers, refusals, WebSockets, and the limits of connections, heads and bodies
===========  =====================================================================================

Each imports only from those below it. Serving is a sibling of services: a gateway knows the state
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
