"""Four ways in which a value can be unexpected, each as a number: 0 is as expected.

Each sees one value at a time and knows only those before it. What it gives does not depend on the
unit of the values once a `Surprise` has looked at it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from math import sqrt

import numpy as np

__all__ = ["Level", "Neighbours", "Range", "Season"]


@dataclass
class Level:
    """How far a value is from the slowly moving mean of those before it."""

    gain: float = 0.005
    mean: float | None = None

    def see(self, value: float) -> float:
        """Return how far it is, and learn from it."""
        if self.mean is None:
            self.mean = value
        error = value - self.mean
        self.mean += self.gain * error
        return abs(error)


@dataclass
class Season:
    """How far a value is from the mean of its hour of the day, or from a moving mean.

    It goes by whichever of the two was closer lately, so that a series without a daily rhythm is
    not compared with one.
    """

    gain: float = 0.2
    memory: float = 0.999
    """How much of the weight of former errors is left after each value."""
    hours: dict[int, float] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    quick: Level = field(default_factory=lambda: Level(gain=0.1))
    """Stands in for an hour that was not seen yet."""
    slow: Level = field(default_factory=lambda: Level(gain=0.02))
    errors: tuple[float, float] = (0.0, 0.0)
    """The weighted errors of the hours and of the moving mean so far."""

    def see(self, at: datetime, value: float) -> float:
        """Return how far it is, and learn from it."""
        hour = at.hour
        stand_in = value if self.quick.mean is None else self.quick.mean
        expected = self.hours.get(hour, stand_in)
        by_hours = self.errors[0] <= self.errors[1]
        of_hour, of_mean = abs(value - expected), self.slow.see(value)
        self.errors = (
            self.errors[0] * self.memory + of_hour,
            self.errors[1] * self.memory + of_mean,
        )
        count = self.counts[hour] = self.counts.get(hour, 0) + 1
        step = max(self.gain, 1 / count)
        self.hours[hour] = expected + step * (value - expected) if hour in self.hours else value
        self.quick.see(value)
        return of_hour if by_hours else of_mean


@dataclass
class Range:
    """How far a value is outside the range of all before it, in parts of that range."""

    quiet: int = 50
    """So many values only widen the range."""
    seen: int = 0
    least: float = 0.0
    greatest: float = 0.0

    def see(self, value: float) -> float:
        """Return how far it is, and learn from it."""
        if not self.seen:
            self.least = self.greatest = value
        width = self.greatest - self.least
        outside = max(self.least - value, value - self.greatest, 0.0)
        self.least, self.greatest = min(self.least, value), max(self.greatest, value)
        self.seen += 1
        if self.seen <= self.quiet + 1 or not outside:
            return 0.0
        return outside / width if width else 1.0


@dataclass
class Neighbours:
    """How different the last values together are from all such stretches before them.

    The distance to the nearest stretches, in deviations of the series. It costs as much as it has
    stretches to compare with: 0.1 to 0.2 ms a value for 2,000 of 24.
    """

    length: int = 24
    nearest: int = 10
    most: int = 2_000
    """How many stretches a value is compared with."""
    values: deque[float] = field(default_factory=deque)
    seen: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def __post_init__(self) -> None:
        size = self.most + 2 * self.length
        self._ring = np.zeros(2 * size)
        self._size = size
        self._end = 0
        for value in self.values:
            self._append(value)

    def see(self, value: float) -> float:
        """Return how different they are, and learn from the value."""
        self.seen += 1
        step = value - self.mean
        self.mean += step / self.seen
        self.squares += step * (value - self.mean)
        self.values.append(value)
        if len(self.values) > self._size:
            self.values.popleft()
        self._append(value)
        deviation = sqrt(self.squares / self.seen)
        held = len(self.values)
        # The stretches that share values with the last one are left out.
        count = min(held - 2 * self.length + 1, self.most)
        if count < self.nearest or deviation <= 0:
            return 0.0
        recent = self._ring[self._end - held : self._end]
        stretches = np.lib.stride_tricks.sliding_window_view(recent, self.length)
        first = held - 2 * self.length + 1 - count
        apart = stretches[first : first + count] - stretches[-1]
        distances = np.einsum("ij,ij->i", apart, apart)
        near = np.partition(distances, self.nearest - 1)[: self.nearest]
        return float(sqrt(near.mean() / self.length) / deviation)

    def _append(self, value: float) -> None:
        """Put a value behind the others; the held ones are one piece of the ring's memory."""
        if self._end == len(self._ring):
            kept = self._size - 1
            self._ring[:kept] = self._ring[self._end - kept :]
            self._end = kept
        self._ring[self._end] = value
        self._end += 1
