"""Verbs about an application that do not run it: check, connectors, explain, graph, init."""
