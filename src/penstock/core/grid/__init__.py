"""Live queries on a grid of tasks: every write meets every query, on the log.

============  ====================================================================
documents     rows of tables as documents, and documents as text
messages      the record types that go between the parts
directory     a set of values by key, in the store of a machine
cells         the operator that compares the writes of a partition with queries
matching      its machine
results       the operator that keeps the result of each query
following     its machine
leases        the service that opens queries, and closes those nobody renews
============  ====================================================================

A **row** of the grid is an operator of its own that has some of the queries; a **column** is a
partition of the table. So each write meets each query in one **cell**, a task. What matches goes to
the task that keeps the result of the query, and from there to the topic of news.
"""
