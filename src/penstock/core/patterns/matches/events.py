"""A record on its way through the matching of a key, and how it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.operators.operator import Arrival, Input
from penstock.core.records.codec import JsonCodec

__all__ = ["EventCodec", "Order", "PatternEvent"]

Order = tuple[int, int, int]
"""Time, input, and the number of the record among those of its key: the order of matching."""

_ANY_SIZE = 1 << 40


class PatternEvent:
    """A record with its place in the order of its key."""

    __slots__ = ("arrival", "input", "kept", "order", "record", "time")

    arrival: Arrival
    """The record as it came."""
    record: Any

    def __init__(self, order: Order, arrival: Arrival) -> None:
        self.order = order
        self.time = order[0]
        self.input = order[1]
        self.arrival = arrival
        self.record = arrival.record
        self.kept: list[Any] | None = None
        """It as plain data, once that was made."""


class _KeptEvent(PatternEvent):
    """One that was kept; its record is read when it is asked for."""

    __slots__ = ("_arrival", "_codec")

    def __init__(self, kept: list[Any], codec: EventCodec) -> None:
        self.order = (kept[0], kept[1], kept[2])
        self.time = kept[0]
        self.input = kept[1]
        self.kept = kept
        self._codec = codec
        self._arrival: Arrival | None = None

    @property
    def arrival(self) -> Arrival:  # type: ignore[override]
        """The record as it came."""
        if self._arrival is None:
            self._arrival = self._codec.arrival(self.kept or [])
        return self._arrival

    @property
    def record(self) -> Any:
        """The record itself."""
        return self.arrival.record


class EventCodec:
    """Events as plain data, and back; one for all keys."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._codecs: list[JsonCodec[Any]] = [
            JsonCodec(each.record, max_bytes=_ANY_SIZE) for each in inputs
        ]

    def pack(self, event: PatternEvent) -> list[Any]:
        """Return an event as plain data."""
        if event.kept is None:
            time, number, order = event.order
            _, key, record, _, source, offset, partition = event.arrival
            value = self._codecs[number].encode(record)
            event.kept = [time, number, order, key, value, source, offset, partition]
        return event.kept

    def unpack(self, kept: list[Any]) -> PatternEvent:
        """Return the event that plain data holds; its record is read when it is asked for."""
        return _KeptEvent(kept, self)

    def arrival(self, kept: list[Any]) -> Arrival:
        """Return the record as it came."""
        time, number, _, key, value, source, offset, partition = kept
        record = self._codecs[number].decode(value)
        return Arrival(number, key, record, time, source, offset, partition)
