"""The detector: one value in, one score out, and what contributed to it.

A value is looked at in four ways (:mod:`errors <apps.anomaly.series.errors>`); how rare each error
is says how much it counts (:mod:`surprise <apps.anomaly.series.surprise>`). What is far above its
own critical value counts little more, so that no way of looking drowns the others.

After an exceedance the detector is quiet until values have been ordinary for a while: one anomaly
is one alarm. The score is above `ALARM` at an alarm and at most `ALARM` everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from math import exp, log1p

from apps.anomaly.series.errors import Level, Neighbours, Range, Season
from apps.anomaly.series.surprise import Surprise

__all__ = ["ALARM", "Score", "SeriesDetector"]

ALARM = 0.5
"""A score above it is an alarm."""

CRITICAL = {"season": 7.0, "neighbours": 3.0, "level": 12.0, "range": 2.0}
"""How surprising each must be to be an anomaly by itself."""
LARGEST = 1e100
"""A value that is further from 0 counts as this one: so squares, and sums of them, are finite."""
_MOST = 50.0
"""A surprise counts at most so many times its critical value."""


@dataclass(frozen=True, slots=True)
class Score:
    """How anomalous a value is, from 0 to 1, and the part of each way of looking."""

    value: float
    parts: dict[str, float]
    """How often each surprise was its critical value."""

    @property
    def alarm(self) -> bool:
        """Whether it is an alarm."""
        return self.value > ALARM


@dataclass
class Pause:
    """Lets an exceedance through if values were ordinary for long enough before it."""

    share: float = 0.03
    """How long, as a share of the values so far..."""
    least: int = 20
    most: int = 200
    """... within these bounds."""
    last: int | None = None
    """The number of the last exceedance."""

    def lets(self, number: int) -> bool:
        """Return whether an exceedance, the value of this number, is an alarm."""
        last, self.last = self.last, number
        pause = min(max(self.share * number, self.least), self.most)
        return last is None or number - last > pause


@dataclass
class SeriesDetector:
    """Scores a series, value by value; it remembers a bounded number of values.

    ``critical`` is how far above ordinary a value must be. Without ``neighbours`` it is twelve
    times as fast, and finds less: changes of shape within the usual range stay unseen.
    """

    critical: float = 0.5
    neighbours: Neighbours | None = field(default_factory=Neighbours)
    season: Season = field(default_factory=Season)
    level: Level = field(default_factory=Level)
    range: Range = field(default_factory=Range)
    pause: Pause = field(default_factory=Pause)
    surprises: dict[str, Surprise] = field(
        default_factory=lambda: {
            name: Surprise(short=5 if name == "season" else 1) for name in CRITICAL
        }
    )
    seen: int = 0

    def see(self, at: datetime, value: float) -> Score:
        """Return the score of a value, and learn from it; it must be a number."""
        value = min(max(value, -LARGEST), LARGEST)
        errors = {
            "season": self.season.see(at, value),
            "level": self.level.see(value),
            "range": self.range.see(value),
        }
        if self.neighbours is not None:
            errors["neighbours"] = self.neighbours.see(value)
        parts = {
            name: min(self.surprises[name].of(error) / CRITICAL[name], _MOST)
            for name, error in errors.items()
        }
        combined = sum(log1p(part) for part in parts.values()) / len(parts)
        number, self.seen = self.seen, self.seen + 1
        if combined <= self.critical:
            return Score(ALARM * combined / self.critical * _BELOW, parts)
        if not self.pause.lets(number):
            return Score(ALARM, parts)
        return Score(1 - (1 - ALARM) * exp(self.critical - combined), parts)


_BELOW = 0.99
"""A value that is no exceedance scores less than one that is not let through."""
