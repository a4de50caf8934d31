"""Messages of MQTT 3.1.1: a source that keeps a session, and a sink.

=======  ======================================================================
source   topics as a source
inbox    which messages are on the log, and what the broker is told; no I/O
sink     records as messages
packets  packets as bytes, and bytes cut into packets; no I/O
wire     a connection to a broker
=======  ======================================================================
"""
