"""Rows of outside stores that services ask for: bounded in time, in number, and in what is kept.

==========  ==================================================================================
definition  a look-up as an application declares it
store       what a store implements
reading     what a store gave, to a record
asking      an open look-up: keys are asked for together, and rows are kept for a while
cache       the rows that are kept
keys        which values may be keys
==========  ==================================================================================
"""
