"""Verbs about an application that do not run it: check, explain, graph, init."""
