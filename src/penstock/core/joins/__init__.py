"""Joins: of streams within a time, of streams with tables, of tables.

===========  =====================================================================================
declared     what a user has said of a join
join         the same with the methods that users call
resolve      from the declaration to the plan
planned      everything that the machines need to know
plan         the same as operators know plans: makes the machine
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
