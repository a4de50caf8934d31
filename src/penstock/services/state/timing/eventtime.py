"""How far event time has come in one task, over all streams that it reads.

Each input's mark follows the newest event time it has shown, its disorder behind. The slowest input
holds event time back, so that a backlog is handled as it happened, whichever stream is read first.
One that is at its end and has been silent for ``idle_after`` holds it back no more; where all are,
the newest mark counts. Tables, and streams that follow the newest, hold nothing back. A time that
is further ahead of the clock than its stream allows moves nothing.

This is not the watermark of a window (``core/panes/watermark.py``): that is of one stream, whose
partitions share one rule and hold nothing back before they have shown a record. Here each input has
the rule of its stream, and holds back also while it has shown none.

All of it is durable: every input's mark, and when it was last heard. With the least of them alone a
task that begins again would wait for inputs anew, and its timers would go off at other moments.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from penstock.core.graph.data import OnLog, Stream
from penstock.core.instants import FIRST_MICROS, LAST_MICROS, instant, micros
from penstock.core.panes.watermark import WatermarkRule
from penstock.core.records.eventtime import event_time_of

__all__ = ["TaskEventTime"]

_LOOK_AGAIN = 1_000_000
"""After so many microseconds it is asked again whether a silent input is at its end."""


@dataclass(slots=True)
class _Input:
    """One input with an event time."""

    read: Callable[[Any], int]
    disorder: int
    idle_after: int | None
    ahead: int | None
    mark: int | None = None
    """The newest event time it has shown, less its disorder."""
    seen_at: int | None = None
    """The clock when it last showed one, or was first looked at."""


class _Heard(msgspec.Struct, array_like=True):
    """What an input had shown, as the changelog keeps it."""

    mark: int | None
    seen_at: int | None


class _Kept(msgspec.Struct):
    """The event time of a task, as the changelog keeps it."""

    at: int | None
    inputs: dict[str, _Heard] = {}


class TaskEventTime:
    """The event time of a task. It never goes back.

    ``waits`` says of a topic whether records of it wait to be handled. A time that is no instant at
    all (before year 1, after 9999) is not taken.
    """

    def __init__(
        self, reads: Sequence[OnLog], *, waits: Callable[[str], bool] = lambda _: False
    ) -> None:
        self.micros: int | None = None
        self.changed = False
        """Whether there is more to keep than at the last commit."""
        self._waits = waits
        self._inputs = {
            data.topic.name: found for data in reads if (found := _input(data)) is not None
        }
        names = [data.topic.name for data in reads if _holds_back(data)]
        holding = {name: self._inputs[name] for name in names if name in self._inputs}
        self._heard = holding or self._inputs
        """The inputs that say how far event time is."""
        self._many = len(holding) > 1
        self._doubts = any(each.ahead is not None for each in self._inputs.values())
        self._clock = 0

    @property
    def known(self) -> bool:
        """Return whether any of the streams has an event time."""
        return bool(self._inputs)

    @property
    def at(self) -> datetime | None:
        """Return the instant; None: no record has had one yet."""
        return None if self.micros is None else instant(self.micros)

    def of(self, topic: str, record: Any) -> int | None:
        """Return the mark that a record gives its input; None where it has none."""
        found = self._inputs.get(topic)
        return None if found is None else found.read(record) - found.disorder

    def look(self, clock: Callable[[], datetime]) -> None:
        """Hear what the clock says: a silent input may hold event time back no more."""
        if self._many or self._doubts:
            self._clock = micros(clock())
        if not self._many:
            return
        for each in self._heard.values():
            if each.seen_at is None:
                each.seen_at = self._clock
                self.changed = True
        self._move()

    def looks_again(self) -> int | None:
        """Return when the clock may move it; None: only records do."""
        if not self._many:
            return None
        moments = [
            max((each.seen_at or 0) + each.idle_after, self._clock + _LOOK_AGAIN)
            for topic, each in self._heard.items()
            if each.idle_after is not None and self._holds(topic, each)
        ]
        return min(moments, default=None)

    def see(self, topic: str, record: Any) -> int | None:
        """Take note of a record; return its own event time, where it has one that can be."""
        if (found := self._inputs.get(topic)) is None:
            return None
        happened = found.read(record)
        if topic in self._heard:
            if found.ahead is None or happened <= self._clock + found.ahead:
                self._show(found, happened - found.disorder)
            self._move()
        return happened if FIRST_MICROS <= happened <= LAST_MICROS else None

    def see_all(self, at: datetime) -> None:
        """Take note of an instant as if a record of each stream had come with it."""
        for each in self._heard.values():
            self._show(each, micros(at) - each.disorder)
        self._move()

    def dump(self) -> bytes:
        """Return everything that a task needs to go on from here."""
        heard = self._heard if self._many else {}
        marks = {topic: _Heard(each.mark, each.seen_at) for topic, each in heard.items()}
        return msgspec.json.encode(_Kept(self.micros, marks))

    def load(self, kept: bytes) -> None:
        """Begin where a former task was. Inputs that are read no more are left out."""
        found = msgspec.json.decode(kept, type=_Kept | int)
        if isinstance(found, int):  # as it was written before inputs were kept one by one
            found = _Kept(found)
        self.micros = found.at
        for topic, heard in found.inputs.items():
            if (each := self._inputs.get(topic)) is not None:
                each.mark, each.seen_at = heard.mark, heard.seen_at

    def kept(self) -> Any:
        """Return how far it is, for :meth:`go_back`."""
        marks = {topic: (each.mark, each.seen_at) for topic, each in self._inputs.items()}
        return self.micros, self.changed, marks

    def go_back(self, kept: Any) -> None:
        """Be where it was: what has moved it on since is to be handled again."""
        self.micros, self.changed, marks = kept
        for topic, (mark, seen_at) in marks.items():
            self._inputs[topic].mark, self._inputs[topic].seen_at = mark, seen_at

    def _show(self, found: _Input, at: int) -> None:
        found.seen_at = self._clock
        self.changed |= self._many
        if (found.mark is None or at > found.mark) and FIRST_MICROS <= at <= LAST_MICROS:
            found.mark = at

    def _move(self) -> None:
        at = self._reached()
        if at is not None and (self.micros is None or at > self.micros):
            self.micros = at
            self.changed = True

    def _reached(self) -> int | None:
        """Return the least mark of the inputs that hold it back; the newest where none does."""
        if self._many:
            holding = [each.mark for topic, each in self._heard.items() if self._holds(topic, each)]
            if holding:
                marks = [mark for mark in holding if mark is not None]
                return min(marks) if len(marks) == len(holding) else None
        marks = [each.mark for each in self._heard.values() if each.mark is not None]
        return max(marks, default=None)

    def _holds(self, topic: str, found: _Input) -> bool:
        if found.idle_after is None or found.seen_at is None:
            return True
        return self._clock - found.seen_at < found.idle_after or self._waits(topic)


def _input(data: OnLog) -> _Input | None:
    """Return an input that nothing was heard of yet; None where its records have no event time."""
    read = event_time_of(data.record.schema)
    if read is None:
        return None
    rule = WatermarkRule.of(data.event_time) if isinstance(data, Stream) else WatermarkRule()
    return _Input(read, rule.disorder, rule.idle_after, rule.ahead)


def _holds_back(data: OnLog) -> bool:
    return isinstance(data, Stream) and data.event_time.follows == "slowest"
