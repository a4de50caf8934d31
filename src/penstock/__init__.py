"""Penstock: a fast data platform in Python, on Kafka and Spark.

Declare an application with ``App`` and the names of this module. What only some applications need
is in modules of its own: ``penstock.state``, ``penstock.tables`` and ``penstock.questions`` for
services; ``penstock.windows``, ``penstock.triggers`` and ``penstock.aggregates`` for windows;
``penstock.patterns``, ``penstock.lifecycles``, ``penstock.jobs``, ``penstock.models``,
``penstock.connectors``; and ``penstock.testing``, the test kit.
"""

from penstock.core.app import App
from penstock.core.derived.merging import merge
from penstock.core.graph.data import Output, delete, feedback, send
from penstock.core.graph.parts import micro_batch, real_time
from penstock.core.graph.policy import on_error, retry
from penstock.core.graph.state import Context, State, ttl
from penstock.core.graph.timeorder import by_event_time
from penstock.core.graph.timer import Timer, Timers
from penstock.core.records.days import day
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import record
from penstock.core.records.schema import limits

__all__ = [
    "App",
    "Context",
    "EventTime",
    "Output",
    "State",
    "Timer",
    "Timers",
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
