"""A windowed aggregation as a service: the pane machine in the state of a task."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.expression.values.plainvalues import from_plain
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.instants import EPOCH, FIRST_MICROS, LAST_MICROS, instant, micros
from penstock.core.panes.arrivals import Arrivals
from penstock.core.panes.bucket import Bucket, BucketOutput
from penstock.core.panes.panecounts import AHEAD, LATE, PANE_KINDS, pane_counts
from penstock.core.records.codec import JsonCodec
from penstock.core.rollup.declaration import declaration_of, refuse_changed
from penstock.core.rollup.reader import RollupReader
from penstock.core.rollup.resolve import Rollup
from penstock.core.rollup.wire import PaneWire
from penstock.core.status.eventtimes import EventTimes
from penstock.core.wiring.panes import pane_destination, rollup_of
from penstock.errors import DataError
from penstock.services.state.panes import PaneState
from penstock.services.step.deadletters import DeadLetters
from penstock.services.step.outputs import Send
from penstock.services.step.reactions import Hold
from penstock.services.step.retries import Retries
from penstock.services.step.step import Clock
from penstock.services.step.tally import Tally

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["DUE_KEYS", "PaneStep", "shown"]

DUE_KEYS = 2_000
"""About so many keys that are due are looked at in one go; a commit may come between two."""
_LOOK_AGAIN = timedelta(milliseconds=100)
"""After this it is seen whether the records have come that the clock waits for."""
_DECLARATION = b"d"
_FACTS = {
    **{kind: f"panes {kind.replace('_', ' ')}" for kind in PANE_KINDS},
    LATE: "late records",
    AHEAD: "ahead records",
}
"""What is counted, in words."""


class PaneStep:
    """Handles the records of one task; those that come together are one moment.

    The watermark is that of the task's own partitions. A record that does not decode is
    dead-lettered; one that no window takes is in the late ledger.
    """

    def __init__(
        self,
        graph: Graph,
        service: Service,
        *,
        clock: Clock,
        shelf: "Shelf | None" = None,
        behind: Callable[[], bool] = lambda: False,
    ) -> None:
        rollup = rollup_of(service)
        self.states = PaneState(shelf, results=shown(rollup))
        self.tally = Tally()
        self.deadline = inf
        """When to leave what is due for later, by the monotonic clock."""
        self.retries = Retries(service.name, clock=clock)  # there is no user's code that could fail
        self._rollup = rollup
        self._clock = clock
        self._codecs = {
            data.topic.name: JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)
            for data in service.reads
        }
        self._reader = RollupReader(rollup)
        self._wire = PaneWire(rollup, pane_destination(graph, service))
        self._dead_letters = DeadLetters(graph, service, clock=clock)
        self._part = service.name
        self._behind = behind if rollup.rule is not None else lambda: False
        """Whether records wait to be handled."""
        self._bucket: Bucket | None = None
        self._number = 0
        self._advanced_to: int | None = None
        self._given: Counter[str] = Counter()
        self._times = EventTimes()

    @property
    def last_dead_letter(self) -> str:
        """Return the last dead letter in words, empty where there was none."""
        return self._dead_letters.last

    def facts(self) -> dict[str, int]:
        """Return how much the bucket holds, and what it has given since the task began."""
        return {"state records": len(self.states), **self._given}

    def event_times(self) -> EventTimes:
        """Return the watermark, and the newest event time that was seen."""
        return self._times

    def open(self, number: int) -> None:
        """Begin with the state that was restored; ConfigurationError where another made it."""
        self._number = number
        self._refuse_another()
        self._bucket = self.states.machine = Bucket(
            self._rollup.machine(), self._rollup.rule, self.states
        )
        self._see_times()

    def run(self, topic: str, records: Iterable[RawRecord], send: Send) -> Hold | None:
        """Handle records of one topic: those that came together are one moment.

        Windows that a moment before has closed come first, and the records wait for them.
        """
        if not self._give_due(send):
            return Hold(next(iter(records)).offset() or 0, self._clock(), unfinished=True)
        accept, reader, believes = self._codecs[topic].accept, self._reader, self._believes
        clock = micros(self._clock())
        came: dict[str, Arrivals] = {}
        for raw in records:
            try:
                record = accept(raw.key(), raw.value())
                time = reader.time(record, clock)
                _check(time)
                found = reader.read(record, time)
            except DataError as error:
                self._dead_letters.bury(raw, error, send)
                self.tally.dead_lettered += 1
                continue
            source = str(raw.partition() or 0)
            if (arrivals := came.get(source)) is None:
                arrivals = came[source] = Arrivals(clock=clock, source=source)
            believed = believes(time, clock)
            # Every record moves the watermark, also one that is not selected.
            if believed and (arrivals.newest is None or time > arrivals.newest):
                arrivals.newest = time
            if found is None:
                self.tally.filtered += 1
                continue
            self.tally.passed += 1
            key, values = found
            origin = (source, raw.offset() or 0)
            if believed:
                arrivals.elements.setdefault(key, []).append((time, values, origin))
            else:
                arrivals.ahead.append((key, time, origin))
        if came:
            self._send(self._running().take(came.values(), limit=DUE_KEYS), send)
        return None

    def wakes_at(self) -> datetime | None:
        """Return when :meth:`tick` has something to do; None: nothing waits for the clock."""
        if self._advanced_to is not None or self._running().pending:
            return EPOCH
        moment = self._running().wakes()
        if moment is None or moment > LAST_MICROS:
            return None
        wakes_at, now_at = instant(moment), self._clock()
        return now_at + _LOOK_AGAIN if wakes_at <= now_at and self._behind() else wakes_at

    def tick(self, send: Send) -> bool:
        """Give the panes that are due: by what came before, by the clock, or as was told.

        What is left at the deadline is due again at once. While records wait to be handled the
        clock moves no event time: a stream is not silent that nobody has read.
        """
        pending = self._running().pending
        if not self._give_due(send):
            return True
        if self._advanced_to is None and self._behind():
            return pending
        bucket, clock = self._running(), micros(self._clock())
        sources = bucket.sources or (str(self._number),)
        event_time, self._advanced_to = self._advanced_to, None
        came = [Arrivals(clock=clock, source=each, newest=event_time) for each in sources]
        self._send(bucket.take(came, limit=DUE_KEYS), send)
        self._give_due(send)
        return True

    def advance(self, event_time_at: datetime) -> None:
        """Take note of an event time, as if a record of each stream had come with it."""
        self._advanced_to = micros(event_time_at)

    def close(self) -> None:
        """End; the state is on the changelog."""

    def _give_due(self, send: Send) -> bool:
        """Give what is due, a slice at least; return whether all of it was given in time."""
        bucket = self._running()
        while bucket.pending:
            self._send(bucket.more(DUE_KEYS), send)
            if monotonic() >= self.deadline:
                break
        return not bucket.pending

    def _send(self, given: BucketOutput, send: Send) -> None:
        for name, count in pane_counts(given).items():
            self._given[_FACTS[name]] += count
        self._see_times()
        for topic, key, value, headers in self._wire.records(given):
            send(topic, key=key, value=value, headers=headers)
            self.tally.written += 1

    def _see_times(self) -> None:
        bucket = self._running()
        if self._rollup.rule is not None and bucket.newest is not None:
            self._times = EventTimes.of_micros(bucket.watermark, bucket.newest)

    def _believes(self, time: int, clock: int) -> bool:
        return self._rollup.rule is None or self._rollup.rule.believes(time, clock)

    def _running(self) -> Bucket:
        if self._bucket is None:
            raise RuntimeError("a step handles records after it was opened")
        return self._bucket

    def _refuse_another(self) -> None:
        now = declaration_of(self._rollup)
        if (kept := self.states.get(_DECLARATION)) is None:
            self.states.put(_DECLARATION, msgspec.json.encode(now))
        else:
            hint = "give it a new name; its panes are then computed anew from the log"
            refuse_changed(self._part, msgspec.json.decode(kept), now, hint=hint)


def shown(rollup: Rollup) -> Callable[[Any], list[Any]]:
    """Return what gives the results of a window, from what it holds, as a record has them."""
    result = rollup.combiner().result
    backs = [from_plain(measure.gives.type) for measure in rollup.measures]
    return lambda held: [back(each) for back, each in zip(backs, result(held), strict=True)]


def _check(time: int) -> None:
    if not FIRST_MICROS <= time <= LAST_MICROS:
        raise DataError(
            f"its event time, {time} microseconds after 1970, is outside the years 1 to 9999",
            code="data.invalid-value",
        )
