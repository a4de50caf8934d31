"""How far event time has come for an operator, over all streams that it reads.

Each stream has a watermark of its own, with the rule that was declared with it. The slowest stream
holds event time back, also while it has shown no record. One that has been silent for its
``idle_after`` holds it back no more; where all are silent, the newest counts. Tables, and streams
that follow the newest, hold nothing back. It never goes back.

It moves record by record, so that it is the same however records are cut into moments. Machines
keep it as state: ``pack`` gives plain data.
"""

from collections.abc import Sequence
from typing import Any

from penstock.core.operators.operator import Arrival, Input
from penstock.core.panes.times import BEGINNING, END
from penstock.core.panes.watermark import SourceTime, Watermark, WatermarkRule

__all__ = ["OperatorTime"]


class OperatorTime:
    """The event time of one task of an operator; ``packed`` is what a former one has kept."""

    def __init__(self, inputs: Sequence[Input], packed: Any = None) -> None:
        self.value = BEGINNING
        """The watermark, as it was last looked at."""
        self._marks = {
            number: Watermark(each.rule)
            for number, each in enumerate(inputs)
            if each.rule is not None
        }
        slowest = [n for n, mark in self._marks.items() if mark.rule.follows == "slowest"]
        self._heard = [self._marks[number] for number in slowest] or list(self._marks.values())
        """The streams that say how far event time is."""
        self._many = len(slowest) > 1
        """Whether one of them may hold it back for another."""
        self._expected = {n: inputs[n].sources for n in slowest if inputs[n].sources}
        self._since: int | None = None
        """The clock when it was first looked at."""
        self._at: int | None = None
        """The clock that the next two are of."""
        self._awake: list[list[tuple[SourceTime, int]]] = []
        """Of each stream that says how far event time is: its sources that are awake, with its
        disorder. While the clock stands still only they move."""
        self._all: list[tuple[SourceTime, int]] = []
        self._alone: SourceTime | None = None
        """The one source that is awake, where there are no others."""
        self._asleep = BEGINNING
        """How far event time is by the streams of which all sources are idle."""
        if packed is not None:
            self.value, self._since, marks = packed
            for number, (value, sources) in marks.items():
                if (mark := self._marks.get(number)) is not None:
                    mark.value = value
                    mark.sources = {name: SourceTime(*found) for name, found in sources.items()}

    @property
    def known(self) -> bool:
        """Whether any of the inputs has an event time."""
        return bool(self._marks)

    @property
    def newest(self) -> int | None:
        """The newest event time that was ever seen."""
        times = (each.newest for mark in self._marks.values() for each in mark.sources.values())
        return max((time for time in times if time > BEGINNING), default=None)

    def believes(self, arrival: Arrival, clock: int) -> bool:
        """Return whether its event time is not too far ahead of the clock."""
        mark = self._marks.get(arrival.input)
        return mark is None or mark.rule.believes(arrival.time, clock)

    def see(self, arrival: Arrival, clock: int) -> int:
        """Take note of a record, unless its time is not believed; return the watermark then."""
        mark = self._marks.get(arrival.input)
        if clock == self._at:
            if mark is None:
                return self.value
            rule = mark.rule
            found = mark.sources.get(arrival.source if rule.follows == "slowest" else "")
            if found is not None and found.seen_at == clock:
                return self._go_on(found, arrival.time, clock, rule)
        self._settle()
        self._begin(clock)
        if mark is not None and mark.rule.believes(arrival.time, clock):
            mark.see(arrival.source, arrival.time, clock)
        value = self.look(clock)
        self._prepare(clock)
        return value

    def look(self, clock: int) -> int:
        """Return the watermark now: a stream that fell silent may hold it back no more."""
        if clock == self._at:
            return self.value
        self._settle()
        self._begin(clock)
        if (reached := self._reached(clock)) > self.value:
            self.value = reached
        return self.value

    def tell(self, event_time: int, clock: int) -> int:
        """Take note of an event time as if each source had shown it; return the watermark then."""
        self._settle()
        self._begin(clock)
        for mark in self._marks.values():
            for name in list(mark.sources) or [""]:
                if mark.sources or mark.rule.follows == "newest":
                    mark.see(name, event_time, clock)
        behind = [event_time - mark.rule.disorder for mark in self._heard]
        self.value = max(self.value, min(behind, default=BEGINNING))
        return self.look(clock)

    def finish(self) -> int:
        """Be at the end: the inputs are."""
        self.value = END
        return self.value

    def wakes(self, time: int, clock: int) -> int | None:
        """Return a later clock at which it may reach a time without a record; None: never.

        Nothing moves before; then it may have to be asked again.
        """
        moments = [mark.wakes(time, clock) for mark in self._heard]
        if self._many:
            moments += [mark.awake_until(self._since or 0) for mark in self._heard]
        return min((each for each in moments if each is not None and each > clock), default=None)

    def pack(self) -> list[Any]:
        """Return everything that a task needs to go on from here, as plain data."""
        self._settle()
        marks = {
            number: (
                mark.value,
                {name: (each.newest, each.seen_at) for name, each in mark.sources.items()},
            )
            for number, mark in self._marks.items()
        }
        return [self.value, self._since, marks]

    def _go_on(self, found: SourceTime, time: int, clock: int, rule: WatermarkRule) -> int:
        """Take note of one more record of a source that came at this clock already."""
        before = found.newest
        if time <= before or (rule.ahead is not None and not rule.believes(time, clock)):
            return self.value
        found.newest = time
        if found is self._alone:
            if (reached := time - rule.disorder) > self.value:
                self.value = reached
            return self.value
        if before - rule.disorder > self.value:
            return self.value  # it does not hold back the others
        if self._many:
            reached = min([each.newest - behind for each, behind in self._all])
        else:
            lows = [min([each.newest - behind for each, behind in of]) for of in self._awake]
            reached = max(self._asleep, *lows)
        self.value = max(self.value, reached)
        return self.value

    def _prepare(self, clock: int) -> None:
        """Find out which sources are awake at a clock."""
        self._at, self._awake, self._asleep = clock, [], BEGINNING
        for mark in self._heard:
            awake = [
                (each, mark.rule.disorder)
                for each in mark.sources.values()
                if not mark.is_idle(each, clock)
            ]
            if awake:
                self._awake.append(awake)
            elif self._many and mark.is_awake(clock, self._since or 0):
                self._awake.append([(SourceTime(mark.value, clock), 0)])
            elif not self._many:
                self._asleep = max(self._asleep, mark.value)
        if not self._awake:
            self._at = None  # nobody is awake: look at all of it each time
        alone = len(self._awake) == 1 and len(self._awake[0]) == 1 and self._asleep <= self.value
        self._alone = self._awake[0][0][0] if alone else None
        self._all = [each for awake in self._awake for each in awake]

    def _settle(self) -> None:
        """Let the watermark of each stream be as far as it came while the clock stood still."""
        if self._at is not None:
            for mark in self._heard:
                mark.at(self._at)
            self._at = None

    def _begin(self, clock: int) -> None:
        """Begin to wait for the sources that are known to come."""
        if self._since is None:
            self._since = clock
        for number, names in self._expected.items():
            sources = self._marks[number].sources
            for name in names:
                if name not in sources:
                    sources[name] = SourceTime(BEGINNING, clock)
        self._expected = {}

    def _reached(self, clock: int) -> int:
        if not self._many:
            return max((mark.at(clock) for mark in self._heard), default=BEGINNING)
        since = self._since or 0
        values = [(mark.at(clock), mark.awake_until(since)) for mark in self._heard]
        awake = [value for value, until in values if until is None or until > clock]
        return min(awake) if awake else max(value for value, _ in values)
