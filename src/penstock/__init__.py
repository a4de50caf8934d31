"""Penstock: a fast data platform in Python, on Kafka and Spark.

Declare an application with ``App`` and the names of this module. Windowed aggregations are
written with the words of ``penstock.windows``, ``penstock.triggers`` and ``penstock.aggregates``;
``penstock.connectors`` has the ways into an application, ``penstock.testing`` the test kit.
"""

from penstock.core.app import App
from penstock.core.derived.merging import merge
from penstock.core.graph.changes import Change
from penstock.core.graph.data import Output, delete, feedback, send
from penstock.core.graph.parts import micro_batch, real_time
from penstock.core.graph.policy import on_error, retry
from penstock.core.graph.questions import ReplyTo, Unanswered, answer, ask
from penstock.core.graph.rows import Rows
from penstock.core.graph.state import Context, ListState, MapState, Opening, State, ttl
from penstock.core.graph.timeorder import by_event_time
from penstock.core.graph.timer import Timer, Timers
from penstock.core.operators.broadcast import broadcast
from penstock.core.records.days import day
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import record
from penstock.core.records.schema import limits

__all__ = [
    "App",
    "Change",
    "Context",
    "EventTime",
    "ListState",
    "MapState",
    "Opening",
    "Output",
    "ReplyTo",
    "Rows",
    "State",
    "Timer",
    "Timers",
    "Unanswered",
    "answer",
    "ask",
    "broadcast",
    "by_event_time",
    "day",
    "delete",
    "feedback",
    "limits",
    "merge",
    "micro_batch",
    "on_error",
    "real_time",
    "record",
    "retry",
    "send",
    "ttl",
]

__version__ = "0.1.0"
