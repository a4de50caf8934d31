"""Kafka, the log: the only importer of the Kafka client.

=================  ==================================================================
connection         which cluster, and how to reach it
connect, broker    the embedded broker: started, joined, given up
topics             topics as declared against topics as they are
contradictions     the differences between the two
topicchanges       what a declaration does about them
schemas            the schema each topic was declared with
logrecord          a record as the log holds it; partitions and offsets
logrange           where reading starts and ends
logspan            the same as offsets of partitions
logreader          reads a range of the log
sending, producer  writes records, idempotent
roundrobin         partitions in turn
transactions       writes records and positions, all or nothing
positions          durable positions of readers that are not in a consumer group
consumer           a member of a consumer group
membership         how it takes part
startoffsets       where it starts
groups             consumer groups seen from outside; lag
site               what a running part is given
admin, client      calls to the cluster with their limits; the client's own log
failures           the client's errors in the families of ``penstock.errors``
=================  ==================================================================
"""
