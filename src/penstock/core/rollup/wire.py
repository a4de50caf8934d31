"""Panes on the wire: records and headers for consumers who know nothing of Penstock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from penstock.core.expression.values.plainvalues import from_plain
from penstock.core.expression.values.times import from_micros
from penstock.core.instants import FIRST_MICROS, LAST_MICROS, instant
from penstock.core.panes.arrivals import Ahead
from penstock.core.panes.bucket import BucketOutput
from penstock.core.panes.pane import LateElement, Pane
from penstock.core.panes.windows import CountWindows, GlobalWindow, Window
from penstock.core.records.codec import JsonCodec
from penstock.core.records.deadletter import Coordinates, dead_letter_headers
from penstock.core.rollup.late import LATE_RECORD, LateRecord
from penstock.core.rollup.panerecord import Shape, has_instants, pane_headers, pane_record_type
from penstock.core.rollup.reader import GroupKey
from penstock.core.rollup.resolve import Rollup
from penstock.errors import DataError

__all__ = ["Destination", "OutgoingRecord", "PaneWire"]

_SECOND = 1_000_000


class OutgoingRecord(NamedTuple):
    """A record on its way to the log; without a value it deletes its key from a table."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where the panes of a part go; plain values that can travel."""

    part: str
    name: str
    topic: str
    shape: Shape
    max_record_bytes: int
    late_topic: str
    dead_letter_topic: str


class PaneWire:
    """Writes what a bucket gave: panes to a stream or table, late records to the ledger."""

    def __init__(self, rollup: Rollup, to: Destination) -> None:
        record = pane_record_type(to.name, rollup, to.shape)
        self._to = to
        self._source = rollup.topic
        self._make = record.cls
        self._names = [field.name for field in record.schema.fields]
        self._codec: JsonCodec[Any] = JsonCodec(record, max_bytes=to.max_record_bytes)
        self._own = any(measure.form.gives is None for measure in rollup.measures)
        """Whether a combiner of the user gives a result, which may not be what it should."""
        self._late_codec = JsonCodec(LATE_RECORD)
        self._groups = GroupKey(rollup.groups)
        self._results = [from_plain(measure.gives.type) for measure in rollup.measures]
        self._window = _window_fields(rollup)
        self._instants = has_instants(rollup)

    def records(self, given: BucketOutput) -> Iterator[OutgoingRecord]:
        """Yield the records of one moment; what a pane withdraws comes right before it."""
        for key, pane in given.panes:
            yield from self._pane(self._groups.unpack(key), pane, given.clock)
        for key, late in given.late:
            yield self._late(key, late)
        for ahead in given.ahead:
            yield self._ahead(ahead, given.clock)

    def _pane(self, groups: list[Any], pane: Pane, clock: int) -> list[OutgoingRecord]:
        """Return the records of a pane; one that its topic does not take becomes a dead letter."""
        try:
            if self._to.shape == "table":
                return list(self._to_table(groups, pane))
            return list(self._to_stream(groups, pane))
        except DataError as error:
            place = {"part": self._to.part, "group": groups, "window": self._window(pane.window)}
            nowhere = Coordinates(self._to.topic, -1, -1)
            headers = dead_letter_headers(error, nowhere, part=self._to.part, at=_instant(clock))
            value = msgspec.json.encode(place)
            return [OutgoingRecord(self._to.dead_letter_topic, None, value, tuple(headers))]

    def _to_stream(self, groups: list[Any], pane: Pane) -> Iterator[OutgoingRecord]:
        for window, value in pane.withdraws:
            yield self._stream_record(groups, pane, window, value, withdrawn=True)
        yield self._stream_record(groups, pane, pane.window, pane.value, withdrawn=False)

    def _stream_record(
        self, groups: list[Any], pane: Pane, window: Window, value: list[Any], *, withdrawn: bool
    ) -> OutgoingRecord:
        at = _instant(pane.stamp) if self._instants else from_micros(pane.stamp)
        made = self._record(groups, pane, window, value, withdrawn, at)
        numbers = (pane.index, pane.on_time_index)
        headers = pane_headers(pane.timing, numbers, last=pane.last, withdrawn=withdrawn)
        return OutgoingRecord(self._to.topic, self._codec.key(made), self._encode(made), headers)

    def _encode(self, made: Any) -> bytes:
        """Return a record as bytes; DataError where no reader would take it."""
        encoded = self._codec.encode(made)
        if self._own:
            self._codec.decode(encoded)
        return encoded

    def _to_table(self, groups: list[Any], pane: Pane) -> Iterator[OutgoingRecord]:
        made = self._record(groups, pane, pane.window, pane.value)
        key = self._codec.key(made)
        for window, value in pane.withdraws:
            if window != pane.window:
                old = self._codec.key(self._record(groups, pane, window, value))
                if old != key:
                    yield OutgoingRecord(self._to.topic, old, None)
        yield OutgoingRecord(self._to.topic, key, self._encode(made))

    def _record(
        self, groups: list[Any], pane: Pane, window: Window, value: list[Any], *rest: Any
    ) -> Any:
        try:
            results = [back(each) for back, each in zip(self._results, value, strict=True)]
        except (TypeError, ValueError, AttributeError) as error:  # of a combiner of the user
            text = f"a result is not of the type that it was declared with: {error}"
            raise DataError(text, code="data.not-encodable") from error
        facts = (pane.timing, pane.index, pane.last)
        values = (*groups, *self._window(window), *results, *facts, *rest)
        return self._make(**dict(zip(self._names, values, strict=True)))

    def _late(self, key: bytes, late: LateElement) -> OutgoingRecord:
        source, offset = late.origin
        start, end = late.window if self._instants else (None, None)
        return self._ledger(
            key,
            source,
            offset,
            time=late.time,
            reason=late.reason,
            late_by_seconds=late.lateness / _SECOND,
            window_start=None if start is None else _instant(start),
            window_end=None if end is None else _instant(end),
            watermark_at=from_micros(late.time + late.lateness),
        )

    def _ahead(self, ahead: Ahead, clock: int) -> OutgoingRecord:
        key, time, (source, offset) = ahead
        seconds = (clock - time) / _SECOND
        return self._ledger(key, source, offset, time=time, reason="ahead", late_by_seconds=seconds)

    def _ledger(
        self, key: bytes, source: str, offset: int, *, time: int, **facts: Any
    ) -> OutgoingRecord:
        group = msgspec.json.encode(self._groups.unpack(key)).decode()
        made = LateRecord(
            part=self._to.part,
            topic=self._source,
            partition=int(source or 0),
            offset=offset,
            group=group,
            happened_at=_instant(time),
            **facts,
        )
        codec = self._late_codec
        return OutgoingRecord(self._to.late_topic, codec.key(made), codec.encode(made))


def _window_fields(rollup: Rollup) -> Callable[[Window], tuple[Any, ...]]:
    match rollup.windowing.windows:
        case GlobalWindow():
            return lambda _window: ()
        case CountWindows():
            return lambda window: window
    return _bounds


@lru_cache(maxsize=1024)
def _bounds(window: Window) -> tuple[datetime, datetime]:
    start, end = window
    return _instant(start), _instant(end)


def _instant(micros: int) -> datetime:
    """Return an instant; a window that reaches beyond the years 1 to 9999 is cut there."""
    return instant(min(max(micros, FIRST_MICROS), LAST_MICROS))
