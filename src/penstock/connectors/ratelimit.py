"""A steady pace: so many lines per second, without bursts after a pause."""

from collections.abc import Callable

__all__ = ["RateLimit"]

_MOST_SAVED_SECONDS = 1.0
"""Time not used is not made up for, beyond this."""


class RateLimit:
    """Says how many lines may go now. The clock is given: seconds that only grow."""

    def __init__(self, per_second: float | None, *, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._clock = clock
        self._allowed = 1.0
        self._counted_at = clock()

    def due(self, wanted: int) -> int:
        """Return how many of the wanted lines may go now, and count them as gone."""
        if self._per_second is None:
            return wanted
        now = self._clock()
        most = max(1.0, self._per_second * _MOST_SAVED_SECONDS)
        earned = (now - self._counted_at) * self._per_second
        self._allowed = min(most, self._allowed + earned)
        self._counted_at = now
        count = min(wanted, int(self._allowed))
        self._allowed -= count
        return count
