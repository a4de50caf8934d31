"""Read-only SQL over rows that are at hand: a text, a checked plan, and the rows it gives.

===========  =====================================================================================
reader       text to syntax: one SELECT, with the grammar of expressions in it
syntax       a query as it is written, each piece with its place
planner      syntax to a plan: names, types and aggregates checked, each fault with its place
binder       names and types in a query; functions: its aggregates
joining      which conditions of a join are about one side, and which join
plan         what is to be done, as a value
access       which keys of a relation a plan needs
execute      rows of relations in, rows of the answer out, within a budget
grouping     rows to groups; keys: values as keys of groups, joins and orders
budget       what a query may take: memory and time
differences  what changed between two answers of one query
===========  =====================================================================================

What an expression means here is what it means everywhere, see docs/expressions.md: docs/queries.md
states the rest of the language.
"""
