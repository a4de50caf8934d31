"""What declarations do: a class of methods for each family, which `App` is composed of.

============  =============================================
data          streams, tables, lake tables, archives
parts         sources, sinks, pipelines, services
actors        actors
questions     questions and answers between parts
jobs          jobs
live          live queries; leases: the service that keeps them open
gateways      gateways
keywords      the options of streams and tables as types
arguments     reads arguments that are values
declarations  what is declared so far, and what is wrong
============  =============================================

A new family of declarations is a module with a class of its own and a base class of `App`.
"""
