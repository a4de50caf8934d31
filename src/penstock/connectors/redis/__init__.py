"""Redis and Valkey: records as keys with expiry, and on channels; entries of streams onto the log.

=======  =====================================================================
keys     sinks: a record is a hash or a text under its key, or is published
writer   a batch and the position behind it, in one transaction
stream   a source: the entries of streams
address  a connection, its limits, and what errors of the server mean here
=======  =====================================================================

The client library is loaded when a connection is opened: ``penstock[redis]``.
"""
