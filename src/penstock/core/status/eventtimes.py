"""How far event time has come in a part, as numbers for Prometheus and as words for people."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from penstock.core.expression.values.times import from_micros
from penstock.core.units import span_text

__all__ = ["EventTimes"]

_MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The watermark and the newest event time that was seen, in seconds since 1970."""

    watermark: float | None = None
    newest: float | None = None

    @classmethod
    def of_micros(cls, watermark: int | None, newest: int | None = None) -> Self:
        """Return the times that are given in microseconds."""
        return cls(_seconds(watermark), _seconds(newest))

    @classmethod
    def of_all(cls, several: Iterable["EventTimes"]) -> Self:
        """Return those of a whole whose parts these are: its watermark is the slowest one."""
        parts = list(several)
        marks = [each.watermark for each in parts if each.watermark is not None]
        newest = [each.newest for each in parts if each.newest is not None]
        return cls(min(marks, default=None), max(newest, default=None))

    def after(self, later: "EventTimes") -> "EventTimes":
        """Return these times after later ones were heard; what was seen stays seen."""
        newest = [each for each in (self.newest, later.newest) if each is not None]
        watermark = self.watermark if later.watermark is None else later.watermark
        return EventTimes(watermark, max(newest, default=None))

    def series(self, now: float) -> dict[str, float]:
        """Return the series of Prometheus; ``now`` in seconds since 1970."""
        found = {}
        if self.newest is not None:
            found["newest_event_timestamp_seconds"] = self.newest
        if self.watermark is not None:
            found["watermark_timestamp_seconds"] = self.watermark
            found["watermark_behind_clock_seconds"] = now - self.watermark
            if self.newest is not None:
                found["watermark_behind_newest_seconds"] = self.newest - self.watermark
        return found

    def words(self, now: float) -> str:
        """Return the watermark and how far it is behind; empty where there is none."""
        if self.watermark is None:
            return ""
        at = from_micros(round(self.watermark * _MICROSECONDS))
        shown = at.isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else "no year"
        words = [shown, _distance(now - self.watermark, "the clock")]
        if self.newest is not None:
            words.append(_distance(self.newest - self.watermark, "the newest event"))
        return ", ".join(words)


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / _MICROSECONDS


def _distance(seconds: float, what: str) -> str:
    if seconds < 0:
        return f"{span_text(-seconds)} ahead of {what}"
    return f"{span_text(seconds)} behind {what}"
