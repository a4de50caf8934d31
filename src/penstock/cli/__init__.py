"""The ``penstock`` command: one module per verb, each imported only when it is used.

===========  =====================================================================================
main         every verb, and the module that has it
application  verbs that look at an application: check, explain, graph, init
log          verbs that look at the log and the lake: topics, groups, dead letters, SQL
machine      verbs about this machine and its settings: doctor, jars, config
running      verbs that run parts: dev, run, replay, rebuild, reset
console      what the console shows: a look, an hour of numbers, what happened
supervision  keeps the processes of ``penstock dev`` alive, and shows them
status       how running parts are: collected, drawn, served over HTTP
screen       what a person sees: the terminal, progress bars, log lines
===========  =====================================================================================
"""
