"""What a gateway knows of the queries that its clients follow, and what it tells them.

============  ====================================================================
subscription  what one client is told of one query: the result, then each change
requests      what clients send
shared        a query as those share it who ask the same
feed          one query: its result now, and its last changes
changes       changes, and several of them squashed into one per object
messages      what clients are sent, as JSON
replica       the copy of a result that a client keeps
token         where a client stands in a query, as text
============  ====================================================================

All subscribers of a query share its feed. What one of them has not been told yet is a place in the
changes that the feed remembers: nobody has a queue of their own, and nobody waits for another one.
"""
