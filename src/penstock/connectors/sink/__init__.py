"""Runs sinks: records of a stream, in batches, to an outside system.

========  ========================================================================
run       one run of a sink: its consumer, its writer, what is tried again
session   reads, collects batches, writes each with the position behind it
intake    from a record on the log to a row for the outside system
standing  where the outside system stands against the log that the sink reads; no I/O
batches   which records are written together, and when: decisions without I/O
========  ========================================================================
"""
