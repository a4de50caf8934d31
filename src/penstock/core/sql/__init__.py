"""Read-only SQL over rows that are at hand: a text, a checked plan, and the rows it gives.

=========  ==================================================================================
reader     text to syntax: one SELECT, with the grammar of expressions in it
planner    syntax to a plan: names, types and aggregates checked, each fault with its place
plan       what is to be done, as a value
access     which keys of a relation a plan needs
execute    rows of relations in, rows of the answer out, within a budget
=========  ==================================================================================

What an expression means here is what it means everywhere, see docs/expressions.md: docs/queries.md
states the rest of the language.
"""
