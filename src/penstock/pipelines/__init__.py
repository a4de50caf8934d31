"""Pipelines on Spark: the only importer of PySpark, and only when something runs.

==================  ==================================================================
session, scratch    Spark's JVM: started, quiet, never left behind
engine, attempts    runs pipelines as streams; keeps one going after trouble that passes
running, joins      what one says about itself; whether its joins have a bound
trimmed             input that was deleted before it was read
plan, reading       a pipeline's inputs and function as a query
refusals            why Spark refuses the plan of a function, in the words of a pipeline
gate                rows of a topic to records, with a verdict on each
quick, exact        the two ways to read a record: fast, and always right
values, keys        values and keys of records, as ``core.codec`` has them
laketable, writers  a Delta table: made, read, written; whose checkpoint fits to it
snapshot, lakeview  a Delta table as it is, for us and for people
archive             records of a stream in the lake, with their places on the log
history, settling   the history of a stream: copied into order, read before the log
pastrange           a finished range of a stream with its history
upkeep, caretaker   what keeps a table in shape, and who does it when
sqlgate, sqlwords   the gate for SQL that people write: parsed, listed, written anew
query               SQL over topics and the lake
writing, sinks      what a function returns to the rows of a topic or the lake
oncesink, oncetask  a batch into Kafka, exactly once: the driver's side, a task's
begun, continuity   which batch was begun last, and whether a checkpoint fits to it
programcode         what a Python function does, as a text to compare
measures, progress  what a query has done, from what Spark says of it
sweeper             dead letters, each written once
checkpoint          how far a query has come
kept, identity      what made a checkpoint, and whether it is still the same
stateful            what the state of a plan is made of
generations         which of a pipeline's checkpoints is the one that runs
rebuild             a pipeline computed anew from the log, beside the one that runs
handover            who writes the output, before and after that
switchover          a table, lake table or stream made that of the new one
rangetask           rows of a finished range into Kafka, exactly once
batch, taskcount    the same function over a finished range, and how far it is
failures            Spark's errors in the families of ``penstock.errors``
pythontrace         the Python exception in the text of such an error
expressions         ``core.expression`` on Spark
schema, sqltext     record types, and pieces of SQL, in Spark's words
==================  ==================================================================
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.backbone.site import Site
    from penstock.core.graph import Graph

__all__ = ["run"]


def run(graph: "Graph", names: Sequence[str], site: "Site") -> None:
    """Run pipelines until ``site.stop`` is set; see ``penstock.pipelines.engine``."""
    from penstock.pipelines.engine import run_pipelines

    run_pipelines(graph, names, site)
