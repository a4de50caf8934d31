"""Tables and states as relations that SQL reads: what there is, reading it, and running a query."""
