"""Kafka, the log: the only importer of the Kafka client.

===========  =====================================================================================
connect      a connection: to the embedded broker, or to a cluster outside
declare      an application's topics and schemas, made on the cluster
site         what a running part is given
meter        what a running part counts, and its reports
schemas      the schema each topic was declared with
log          reads and writes records: consumers, producers, transactions, positions, groups
topics       topics as declared against topics as they are; ranges of them
broker       the embedded broker
client       what every client needs: connection, admin calls, errors, records as bytes
===========  =====================================================================================

Each room imports only from those below it.
"""
