"""How far event time has come: bounded disorder per source, idle sources, idle streams.

Each source's watermark follows the newest event time it has shown, its disorder behind. The
slowest source holds the whole back until it has been silent for ``idle_after``. When all are silent
none holds another back: it is that of the newest, whenever somebody looks, and stays there, unless
``closes_after`` says after how long it goes on with the clock, so that the last windows of an idle
stream close. Event times too far ahead of the clock are not believed.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, Self

from penstock.core.instants import MICROSECOND
from penstock.core.panes.times import BEGINNING, END
from penstock.core.records.eventtime import EventTime

__all__ = ["SourceTime", "Watermark", "WatermarkRule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkRule:
    """The spans of one stream, in its unit of time. None: never; any future is believed."""

    disorder: int = 0
    idle_after: int | None = None
    closes_after: int | None = None
    follows: Literal["slowest", "newest"] = "slowest"
    """Which source it follows; the newest is as if there were one source only."""
    ahead: int | None = None

    @classmethod
    def of(cls, time: EventTime) -> Self:
        """Return the rule of a stream in microseconds."""

        def span(given: timedelta | None) -> int | None:
            return None if given is None else given // MICROSECOND

        return cls(
            disorder=span(time.disorder) or 0,
            idle_after=span(time.idle_after),
            closes_after=span(time.closes_after),
            follows=time.follows,
            ahead=span(time.ahead),
        )

    def believes(self, time: int, clock: int) -> bool:
        """Return whether an event time is not too far ahead of the clock."""
        return self.ahead is None or time <= clock + self.ahead


@dataclass(slots=True)
class SourceTime:
    """What one source has shown."""

    newest: int
    seen_at: int
    """The clock when it last showed something."""


@dataclass(slots=True)
class Watermark:
    """The watermark of one stream over its sources; plain data, kept as state."""

    rule: WatermarkRule
    sources: dict[str, SourceTime] = field(default_factory=dict)
    value: int = BEGINNING

    def see(self, source: str, time: int, clock: int) -> None:
        """Take note of the newest event time of a source."""
        name = source if self.rule.follows == "slowest" else ""
        found = self.sources.get(name)
        if found is None:
            self.sources[name] = SourceTime(time, clock)
        else:
            found.newest = max(found.newest, time)
            found.seen_at = max(found.seen_at, clock)

    def at(self, clock: int) -> int:
        """Return the watermark now; it never goes back."""
        if self.sources:
            self.value = max(self.value, self._reached(clock))
        return self.value

    def awake_until(self, since: int) -> int | None:
        """Return the clock at which the last source falls idle; None: it never does.

        A stream that has shown nothing is awake from ``since`` on.
        """
        spans = [
            each for each in (self.rule.idle_after, self.rule.closes_after) if each is not None
        ]
        last = max((source.seen_at for source in self.sources.values()), default=since)
        return last + min(spans) if spans else None

    def is_awake(self, clock: int, since: int) -> bool:
        """Return whether the stream has not been silent for too long."""
        until = self.awake_until(since)
        return until is None or until > clock

    def wakes(self, time: int, clock: int) -> int | None:
        """Return a later clock at which it may reach a time without a record; None: never.

        Nothing moves before; then it may have to be asked again.
        """
        if not self.sources:
            return None
        rule, moments = self.rule, []
        if rule.idle_after is not None and len(self.sources) > 1:
            moments += [source.seen_at + rule.idle_after for source in self.sources.values()]
        if rule.closes_after is not None:
            newest = max(source.newest for source in self.sources.values())
            last = max(source.seen_at for source in self.sources.values())
            moments.append(last + max(rule.closes_after, time - newest + rule.disorder))
            moments += [source.seen_at + rule.closes_after for source in self.sources.values()]
        return min((moment for moment in moments if moment > clock), default=None)

    def is_idle(self, source: SourceTime, clock: int) -> bool:
        """Return whether a source has been silent for so long that it holds back no other."""
        silent = clock - source.seen_at
        spans = (self.rule.idle_after, self.rule.closes_after)
        return any(span is not None and silent >= span for span in spans)

    def _reached(self, clock: int) -> int:
        awake = [source for source in self.sources.values() if not self.is_idle(source, clock)]
        if awake:
            return self._behind(min(source.newest for source in awake))
        newest = self._behind(max(source.newest for source in self.sources.values()))
        silent = clock - max(source.seen_at for source in self.sources.values())
        if self.rule.closes_after is None or silent < self.rule.closes_after:
            return newest
        return newest + silent

    def _behind(self, newest: int) -> int:
        return newest if newest == END else newest - self.rule.disorder
