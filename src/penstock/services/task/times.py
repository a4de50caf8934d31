"""When records happened, or were written: what a task puts them into order by."""

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.data import OnLog
from penstock.core.graph.parts import Service
from penstock.core.instants import micros
from penstock.core.operators.marks import deleted_at
from penstock.core.records.schema import Scalar, Schema

__all__ = ["times_of"]

TimeOf = Callable[[RawRecord], int]


def times_of(service: Service) -> Mapping[str, TimeOf]:
    """Return for each input topic what reads the time of its records, in microseconds.

    It is the event time where all inputs have one and a user's service asked for it, else the time
    of the log: times of two kinds must not be compared. A record that has none that can be read
    has that of the log too, and so has the deletion of a row whose writer did not say its time.
    """
    timed = all(data.record.schema.time is not None for data in service.reads)
    if service.declared or not timed:
        return {data.topic.name: log_time for data in service.reads}
    return {data.topic.name: _event_time(data) for data in service.reads}


def log_time(raw: RawRecord) -> int:
    """Return when a record was written."""
    return max(0, raw.timestamp()[1]) * 1000


def _event_time(data: OnLog) -> TimeOf:
    schema: Schema = data.record.schema
    field = schema.field(schema.time) if schema.time else None
    if field is None:
        return log_time
    name, whole = field.name, field.type == Scalar("int")
    kind = msgspec.defstruct("Time", [(name, int if whole else datetime)])
    decode = msgspec.json.Decoder(kind).decode

    def event_time(raw: RawRecord) -> int:
        value = raw.value()
        if value is None:
            deleted = deleted_at(raw.headers())
            return log_time(raw) if deleted is None else deleted
        try:
            found = getattr(decode(value), name)
            return found * 1000 if whole else micros(found)
        except (msgspec.MsgspecError, ValueError, TypeError, OverflowError):
            return log_time(raw)  # it will be a dead letter when it is handled

    return event_time
