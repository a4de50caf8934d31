"""The options of streams and tables as types: a type checker then knows what a method returns."""

from datetime import timedelta
from typing import TypedDict

from penstock.core.declare.declarations import Engine
from penstock.core.records.eventtime import EventTime
from penstock.core.topic import Partitioning

__all__ = ["StreamOptions", "TableOptions"]


class StreamOptions(TypedDict, total=False):
    """What ``app.stream`` takes by keyword."""

    on: Engine
    partitions: int
    partition_by: Partitioning | None
    retention: str | timedelta | None
    retention_size: str | None
    replication: int | None
    max_record: str | int
    event_time: EventTime | None


class TableOptions(TypedDict, total=False):
    """What ``app.table`` takes by keyword."""

    on: Engine
    partitions: int
    replication: int | None
    max_record: str | int
    history: str | timedelta | None
