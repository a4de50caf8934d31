"""Topics of other Kafka clusters.

=======  ================================================================
source   a topic of another cluster as a source
address  where a cluster is, and how to log in
=======  ================================================================
"""
