"""Life cycles: a declared state machine for each key, as an operator.

===========  =====================================================================================
lifecycle    what a user declares: states, moves, time-outs, what is recorded when a state begins
plan         its expressions read: which moves there are from each state, what results are like
soundness    states that nothing leads to, that never end, moves that never happen
machine      the state of each key: records and time in, changes out
===========  =====================================================================================
"""
