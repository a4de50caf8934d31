"""What declarations do: a class of methods for each family, which `App` is composed of.

============  =============================================
data          streams, tables, lake tables, archives
parts         sources, sinks, pipelines, services
gateways      gateways
arguments     reads arguments that are values
declarations  what is declared so far, and what is wrong
============  =============================================

A new family of declarations is a module with a class of its own and a base class of `App`.
"""
