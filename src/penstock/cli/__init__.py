"""The ``penstock`` command: one module per verb, each imported only when it is used.

===========  =====================================================================================
main         every verb, and the module that has it
application  verbs about an application: check, connectors, explain, graph, init
log          verbs that look at the log, the lake and running state: topics, SQL, live queries
machine      verbs about this machine: doctor, jars, config, bundle, export
running      verbs that run parts: dev, run, replay, rebuild, reset, console
console      what the console shows: a look, an hour of numbers, what happened
supervision  keeps the processes of ``penstock dev`` alive, and shows them
status       how running parts are: collected, drawn, served over HTTP
screen       what a person sees: the terminal, progress bars, log lines
===========  =====================================================================================
"""
