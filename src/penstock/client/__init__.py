"""A client of gateways: records in and questions out, with an application's own record types.

==========  ====================================================================================
client      the two faces: ``Client`` for ``async``, ``SyncClient`` for everything else
records     a kind of request each: records in, ...
questions   ... questions to the application, answered now or later, ...
lookups     ... rows and values out, ...
queries     ... SQL over both, ...
changes     ... what changes in these, as it changes, ...
live        ... and the results of live queries
following   live queries that are followed, each or several on one connection
asking      what these have in common
wire        connections that are kept, and requests that are tried again
connection  one connection: HTTP/1.1, both directions at once
refusals    problem documents as errors
retrying    when a request is sent again: a decision without I/O
naming      keys and states as they are named over HTTP
answers     what a client is answered, as values
events      server-sent events, from bytes
limits      how long, how often, how much
web         the client of browsers: JavaScript, which gateways serve as files
==========  ====================================================================================

Each imports only from those below it. A client knows a gateway by HTTP alone: it imports neither
the server nor Kafka.
"""

from penstock.client.answers import Found, RowChange, Sent
from penstock.client.client import Client, SyncClient
from penstock.client.following.copied import LiveChange, LiveCopy, LiveEvent
from penstock.client.following.listed import LiveList
from penstock.client.following.result import LiveResult, LiveResults
from penstock.client.limits import ClientLimits
from penstock.client.queries import Selected
from penstock.client.questions import Ticket

__all__ = [
    "Client",
    "ClientLimits",
    "Found",
    "LiveChange",
    "LiveCopy",
    "LiveEvent",
    "LiveList",
    "LiveResult",
    "LiveResults",
    "RowChange",
    "Selected",
    "Sent",
    "SyncClient",
    "Ticket",
]
