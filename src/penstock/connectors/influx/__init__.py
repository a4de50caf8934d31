"""Time-series stores: records as points of Influx line protocol, over HTTP.

======  ===========================================
sink    a sink: its options, and its writer
points  from a record to a line of the protocol
======  ===========================================
"""
