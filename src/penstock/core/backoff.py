"""How long to wait before something that failed is tried again."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

__all__ = ["Backoff"]

_DOUBLINGS = 60
_STABLE = 2


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double from ``first`` up to ``longest``.

    It is a value without a clock: whoever waits counts the failures, or takes ``delays``.

    >>> backoff = Backoff(timedelta(seconds=1), timedelta(seconds=5))
    >>> [backoff.delay(failures).total_seconds() for failures in (1, 2, 3, 4, 5)]
    [1.0, 2.0, 4.0, 5.0, 5.0]
    """

    first: timedelta
    longest: timedelta

    def delay(self, failures: int) -> timedelta:
        """Return the wait after so many failures in a row, counted from 1."""
        times = 1 << min(failures - 1, _DOUBLINGS)
        if self.first > self.longest / times:  # the product may be more than a timedelta holds
            return self.longest
        return min(self.first * times, self.longest)

    def delays(self) -> Iterator[float]:
        """Yield the seconds to wait after each failure in a row."""
        return (self.delay(failures).total_seconds() for failures in count(1))

    def is_over(self, seconds: float) -> bool:
        """Return whether what ran well for so long is over its trouble.

        That is more than twice the longest wait; the next failure begins a new row.
        """
        return seconds > _STABLE * self.longest.total_seconds()
