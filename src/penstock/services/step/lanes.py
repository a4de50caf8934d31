"""In which order the calls of an async batch come: one after the other of a key, keys side by side.

Each record of a batch, and each timer that goes off in it, has a **place**. A timer's place is
where a service that is not async would let it go off: before the first record that moves event time
past it, or after the record that has set it in the past. Calls of one key are made in the order of
their places, those of different keys overlap, and what they give is sent in the order of the
places. So nothing that a batch gives depends on where it begins and ends.
"""

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.timer import TimerTime
from penstock.errors import DataError
from penstock.services.state.timing.queue import Due, TimerQueue
from penstock.services.step.outputs import Sent

__all__ = ["AFTER", "BEFORE", "RECORD", "BatchPlace", "Item", "Lane", "Lanes"]

BEFORE, RECORD, AFTER = range(3)
_LONG_AGO = -(1 << 63)


class BatchPlace(NamedTuple):
    """Where something stands in a batch: at a record, before or after it; timers by instant."""

    number: int
    """The number of the record in the batch; -1: there is none."""
    side: int
    at: int = 0
    key: bytes = b""
    name: str = ""


@dataclass(slots=True, eq=False)
class Item:
    """A record to be handled, or a timer that goes off, and what became of it."""

    place: BatchPlace
    key: bytes | None
    raw: RawRecord | None = None
    record: Any = None
    due: Due | None = None
    reached: int | None = None
    """How far event time is at its place; None: as far as it is for the task."""
    happened: int | None = None
    """The event time of the record itself."""
    sent: Sequence[Sent] = ()
    undo: list[tuple[Any, Any, Any]] = field(default_factory=list)
    """What takes back what the call did."""
    refused: DataError | None = None
    """Why the record does not decode."""
    error: BaseException | None = None
    """What the user's code raised."""


@dataclass(slots=True, eq=False)
class Lane:
    """What waits of one key."""

    key: bytes | None
    records: deque[Item] = field(default_factory=deque)
    due: list[tuple[int, str]] = field(default_factory=list)
    """Timers that may go off, in order; each is looked up again when it is its turn."""
    busy: bool = False
    last: tuple[int, int] = (-1, AFTER)
    """The record, and the side of it, where its last call stood."""


class Lanes:
    """The lanes of one batch; ``time`` is that of the timers that go off in it."""

    def __init__(self, timers: TimerQueue | None, *, time: TimerTime) -> None:
        self._timers = timers
        self._time = time
        self._lanes: dict[bytes, Lane] = {}
        self._reached: list[int] = []
        self._until: int | None = None
        self.done: list[Item] = []
        """What was begun, in the order in which it ended."""
        self._limit: BatchPlace | None = None

    @property
    def halted(self) -> bool:
        """Return whether something failed in a way that nothing behind it is wanted."""
        return self._limit is not None

    def halt(self, place: BatchPlace) -> None:
        """Begin nothing any more that stands behind a place."""
        if self._limit is None or place < self._limit:
            self._limit = place

    def put(self, item: Item) -> Lane:
        """Put a record into the lane of its key."""
        lane = Lane(None) if item.key is None else self._lane(item.key)
        lane.records.append(item)
        return lane

    def move(self, until: int | None, *, record: bool) -> None:
        """Hear how far time has come, with a record or without one."""
        self._until = until
        if record:
            self._reached.append(_LONG_AGO if until is None else until)

    def wake(self) -> Iterator[Lane]:
        """Yield the lanes of timers that are due; one that is due later waits in the queue."""
        if self._timers is None or self._until is None:
            return
        while (found := self._timers.point(self._time, self._until)) is not None:
            at, key, name = found
            lane = self._lane(key)
            heapq.heappush(lane.due, (at, name))
            yield lane

    def next(self, lane: Lane) -> Item | None:
        """Take what is to be called next of a key; None: nothing for now."""
        record = lane.records[0] if lane.records else None
        while lane.due:
            at, name = lane.due[0]
            place = self._place(lane, at, name)
            if (record is not None and record.place < place) or self._is_behind(place):
                break
            heapq.heappop(lane.due)
            due = self._take(lane, at, name)
            if due is not None:
                reached = self._reached[place.number] if place.number >= 0 else None
                return Item(place, lane.key, due=due, reached=reached)
        if record is None or self._is_behind(record.place):
            return None
        return lane.records.popleft()

    def ended(self, lane: Lane, item: Item) -> None:
        """Hear that a call is over."""
        lane.last = item.place[:2]
        self.done.append(item)

    def give_back(self) -> None:
        """Let the timers that were not begun wait in the queue again."""
        for lane in self._lanes.values():
            for at, name in lane.due:
                if self._timers is not None and lane.key is not None:
                    self._timers.point_again(self._time, lane.key, name, at)
            lane.due.clear()

    def _lane(self, key: bytes) -> Lane:
        if (lane := self._lanes.get(key)) is None:
            lane = self._lanes[key] = Lane(key)
        return lane

    def _take(self, lane: Lane, at: int, name: str) -> Due | None:
        if self._timers is None or lane.key is None:
            return None
        return self._timers.take(self._time, lane.key, name, at)

    def _is_behind(self, place: BatchPlace) -> bool:
        return self._limit is not None and place > self._limit

    def _place(self, lane: Lane, at: int, name: str) -> BatchPlace:
        index, side = lane.last
        if not self._reached:
            index, side = -1, AFTER
        elif index >= 0 and at <= self._reached[index]:
            side = BEFORE if side == BEFORE else AFTER
        else:
            index, side = bisect_left(self._reached, at, index + 1), BEFORE
        return BatchPlace(index, side, at, lane.key or b"", name)
