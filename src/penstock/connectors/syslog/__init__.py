"""Messages of syslog as a source: over UDP, TCP or TLS, in the old format and the new one.

=========  =================================================================
source     the source and its options
frames     bytes of a connection cut into messages; no I/O
message    what a message says: RFC 5424, RFC 3164; no I/O
datagrams  messages over UDP
=========  =================================================================
"""
