"""Penstock: a fast data platform in Python, on Kafka and Spark."""

from penstock.core.app import App, feedback, micro_batch, real_time, send
from penstock.core.record import record
from penstock.core.schema import limits
from penstock.core.state import Context, State

__all__ = [
    "App",
    "Context",
    "State",
    "feedback",
    "limits",
    "micro_batch",
    "real_time",
    "record",
    "send",
]

__version__ = "0.1.0"
