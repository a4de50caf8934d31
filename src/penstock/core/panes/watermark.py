"""How far event time has come: bounded disorder per source, idle sources, clocks that are wrong.

Each source's watermark follows the newest event time it has shown, its disorder behind. The
slowest source holds the whole back, until it has been silent for ``idle_after``; when all are
silent, the watermark goes on with the clock, so that the windows of an idle stream close. An event
further ahead of the clock than ``ahead`` is not believed: it is counted, returned to the caller as
refused, and moves nothing.
"""

from dataclasses import dataclass, field

from penstock.core.panes.times import BEGINNING

__all__ = ["SourceTime", "Watermark", "WatermarkRule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkRule:
    """The spans of one stream, in its unit of time. None: never idle; any future is believed."""

    disorder: int = 0
    idle_after: int | None = None
    ahead: int | None = None


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
    refused: int = 0

    def see(self, source: str, time: int, clock: int) -> bool:
        """Take note of an event; False: it is from too far in the future and was refused."""
        if self.rule.ahead is not None and time > clock + self.rule.ahead:
            self.refused += 1
            return False
        found = self.sources.get(source)
        if found is None:
            self.sources[source] = SourceTime(time, clock)
        else:
            found.newest = max(found.newest, time)
            found.seen_at = max(found.seen_at, clock)
        return True

    def at(self, clock: int) -> int:
        """Return the watermark now; it never goes back."""
        if self.sources:
            self.value = max(self.value, self._reached(clock))
        return self.value

    def _reached(self, clock: int) -> int:
        awake = [source for source in self.sources.values() if not self._idle(source, clock)]
        if awake:
            return min(source.newest for source in awake) - self.rule.disorder
        latest = max(self.sources.values(), key=lambda source: source.newest)
        silent = clock - max(source.seen_at for source in self.sources.values())
        return latest.newest - self.rule.disorder + silent

    def _idle(self, source: SourceTime, clock: int) -> bool:
        return self.rule.idle_after is not None and (clock - source.seen_at >= self.rule.idle_after)
