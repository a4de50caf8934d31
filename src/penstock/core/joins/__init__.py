"""Joins: of streams within a time, of streams with tables, of tables.

===========  =====================================================================================
join         the declaration
resolve      from the declaration to the plan
plan         the plan: everything that the machines need to know
sides        the two sides as declared, and whether their keys and partitions agree
output       the type of the results, and what makes them
rekey        a side whose records go to other partitions first
streams      the machine of two streams
lookup       the machines of a stream and a table
pairs        the machine of two tables with the same key
answers      two tables, of which the left points at the right one: who points where, answered
foreign      the last step of that: left rows beside their answers
spans        spans of time that may be negative
===========  =====================================================================================
"""
