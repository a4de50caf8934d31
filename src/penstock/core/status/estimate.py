"""How long something still takes, by how fast it went lately: pure, its clock given."""

from collections import deque

__all__ = ["Estimate"]

_WINDOW_SECONDS = 30.0
"""What was longer ago says nothing about the speed now."""
_LEAST_SECONDS = 2.0
"""A rate over less time than this is a guess."""


class Estimate:
    """Follows how much is done of how much; says nothing until it has seen a rate.

    The total may grow, as the end of a log does; what is left then grows with it. A total of 0
    is one that is not known.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self.done = 0
        self.total = 0

    def take(self, at: float, done: int, total: int) -> None:
        """Take note that at this second so much was done, of so much."""
        self.done, self.total = done, max(total, done)
        self._seen.append((at, done))
        # One that is older is kept: over the whole window there is a rate, also of rare news.
        while len(self._seen) > 2 and at - self._seen[1][0] >= _WINDOW_SECONDS:  # noqa: PLR2004
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """How much is done in a second; None while that is not known."""
        if not self._seen:
            return None
        (first_at, first), (last_at, last) = self._seen[0], self._seen[-1]
        if last_at - first_at < _LEAST_SECONDS or last <= first:
            return None
        return (last - first) / (last_at - first_at)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at this rate; None while that is not known."""
        if 0 < self.total <= self.done:
            return 0.0
        rate = self.rate
        return None if rate is None else (self.total - self.done) / rate
