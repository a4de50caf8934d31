"""How rare an error is, given the errors before it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import erfc, log10, sqrt

__all__ = ["Surprise"]

_LEAST_DEVIATION = 1e-9
_MOST_DEVIATIONS = 37.0
"""Beyond that a normal distribution is 0 in floating point."""
_ANEW = 10_000
"""After so many errors the sums are added up again, so that rounding does not pile up."""


@dataclass
class Surprise:
    """The mean of the last few errors, against the mean and deviation of all such means.

    It gives minus the decimal logarithm of the chance to see as large a mean: 3 is one in a
    thousand. The first ones give 0, as there is nothing to compare with.
    """

    short: int
    """How many errors are taken together."""
    long: int = 4_000
    """How many means are compared with."""
    quiet: int = 150
    recent: deque[float] = field(default_factory=deque)
    means: deque[float] = field(default_factory=deque)
    seen: int = 0
    total: float = 0.0
    squares: float = 0.0

    def of(self, error: float) -> float:
        """Return how surprising an error is, and learn from it."""
        self.recent.append(error)
        if len(self.recent) > self.short:
            self.recent.popleft()
        mean = sum(self.recent) / len(self.recent)
        found = self._rarity(mean) if self.seen >= self.quiet else 0.0
        self._keep(mean)
        return found

    def _rarity(self, mean: float) -> float:
        count = len(self.means)
        usual = self.total / count
        deviation = sqrt(max(self.squares / count - usual * usual, 0.0))
        away = (mean - usual) / max(deviation, _LEAST_DEVIATION)
        away = min(max(away, 0.0), _MOST_DEVIATIONS)
        return -log10(max(erfc(away / sqrt(2)) / 2, 1e-300))

    def _keep(self, mean: float) -> None:
        self.seen += 1
        self.means.append(mean)
        self.total += mean
        self.squares += mean * mean
        if len(self.means) > self.long:
            gone = self.means.popleft()
            self.total -= gone
            self.squares -= gone * gone
        if self.seen % _ANEW == 0:
            self.total = sum(self.means)
            self.squares = sum(each * each for each in self.means)
