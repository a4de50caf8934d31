"""PostgreSQL: rows of a stream or table into a table, and changes of tables onto the log.

=========  ============================================================================
table      a sink: inserts, updates and deletes in one transaction with the position
writer     how a batch is written, and which rows were refused
columns    record types as columns, values as PostgreSQL takes them
address    a connection, its limits, and what errors of the server mean here
=========  ============================================================================

The client library (psycopg 3) is loaded when a connection is opened: ``penstock[postgres]``.
"""
