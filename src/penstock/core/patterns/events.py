"""A record on its way through the matching of a key, and how it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.operators.operator import Arrival, Input
from penstock.core.records.codec import JsonCodec

__all__ = ["Event", "EventCodec", "Order"]

Order = tuple[int, int, int]
"""Time, input, and the number of the record among those of its key: the order of matching."""

_ANY_SIZE = 1 << 40


class Event:
    """A record with its place in the order of its key; what was kept is read when asked for."""

    __slots__ = ("_arrival", "_codec", "_kept", "input", "order", "time")

    def __init__(
        self,
        order: Order,
        arrival: Arrival | None,
        codec: EventCodec | None = None,
        kept: list[Any] | None = None,
    ) -> None:
        self.order = order
        self.time = order[0]
        self.input = order[1]
        self._arrival = arrival
        self._codec = codec
        self._kept = kept

    @property
    def arrival(self) -> Arrival:
        """The record as it came."""
        if self._arrival is None:
            if self._codec is None or self._kept is None:
                raise ValueError("an event without a record")
            self._arrival = self._codec.arrival(self._kept)
        return self._arrival

    @property
    def record(self) -> Any:
        """The record itself."""
        return (self._arrival or self.arrival).record

    def pack(self, codec: EventCodec) -> list[Any]:
        """Return it as plain data."""
        if self._kept is None:
            self._kept = codec.pack(self)
        return self._kept


class EventCodec:
    """Events as plain data, and back; one for all keys."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._codecs: list[JsonCodec[Any]] = [
            JsonCodec(each.record, max_bytes=_ANY_SIZE) for each in inputs
        ]

    def pack(self, event: Event) -> list[Any]:
        """Return an event as plain data."""
        time, number, order = event.order
        came = event.arrival
        value = self._codecs[number].encode(came.record)
        return [time, number, order, came.key, value, came.source, came.offset, came.partition]

    def unpack(self, kept: list[Any]) -> Event:
        """Return the event that plain data holds; its record is read when it is asked for."""
        return Event((kept[0], kept[1], kept[2]), None, self, kept)

    def arrival(self, kept: list[Any]) -> Arrival:
        """Return the record as it came."""
        time, number, _, key, value, source, offset, partition = kept
        record = self._codecs[number].decode(value)
        return Arrival(number, key, record, time, source, offset, partition)
