"""Life cycles: a declared state machine for each key, as an operator.

===========  =====================================================================================
declared     what a user has said of a life cycle: states, moves, time-outs, fields of changes
lifecycle    the same with the methods that users call
planned      which moves there are from each state, all that the machine needs to know
plan         from the declaration to the plan: expressions read, what results are like
soundness    states that nothing leads to, that never end, moves that never happen
machine      the state of each key: records and time in, changes out
===========  =====================================================================================
"""
