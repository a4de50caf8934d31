"""PostgreSQL: rows of a stream or table into a table, and changes of tables onto the log.

=========  ============================================================================
table      a sink: inserts, updates and deletes in one transaction with the position
writer     how a batch is written, and which rows were refused
changes    a source: rows that are there, then inserts, updates and deletes, without a gap
reading    one pass over them; snapshot, stream and streamtable are its phases
seen       which changes the rows that were there had in them already
slot       what the server keeps for the source
pgoutput   the messages of logical replication
rowsource  a source: rows that are added, by a column that grows
rows       values and keys, as the server sends them
columns    record types as columns, values as PostgreSQL takes them
address    a connection, its limits, and what errors of the server mean here
=========  ============================================================================

The client library (psycopg 3) is loaded when a connection is opened: ``penstock[postgres]``.
"""
