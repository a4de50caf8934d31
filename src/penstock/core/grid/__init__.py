"""Live queries on a grid of tasks: every write meets every query, on the log.

============  ====================================================================
documents     rows of tables as documents, and documents as text
messages      the record types that go between the parts
directory     a set of values by key, in the store of a machine
livequeries   live queries over a table, as a value
operators     cells, which compare writes with queries; results, which are kept
matching      the machine of a cell
following     the machine of results
============  ====================================================================

A **row** of the grid is an operator of its own that has some of the queries; a **column** is a
partition of the table. So each write meets each query in one **cell**, a task. What matches goes to
the task that keeps the result of the query, and from there to the topic of news. The service that
opens queries, and closes those nobody renews, is declared in ``core.declare.leases``.
"""
