"""Runs sources: items in, records and positions onto the log.

===================  =====================================================================
positioned, session  a positioned connector: records and position in one transaction
live                 a live connector: back pressure, once or lost with the process
splits, pacing       what to read, when to commit and try again: decisions without I/O
positions            how far each split was read, on a topic of the source
outlet, intake       what becomes of an item: record, dead letter, or nothing
===================  =====================================================================
"""
