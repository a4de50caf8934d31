"""How fast a part goes, from one report to the next."""

from penstock.core.status.report import Counts

__all__ = ["Rates"]

_LEAST_SECONDS = 1e-3


class Rates:
    """Records per second since the last question. Instants are given, in seconds.

    >>> rates = Rates(10.0)
    >>> rates.since_last(Counts(received=50, passed=50, written=10), at=15.0)
    (10.0, 2.0)
    """

    def __init__(self, at: float) -> None:
        self._at = at
        self._counts = Counts()

    def since_last(self, counts: Counts, *, at: float) -> tuple[float, float]:
        """Return how many records came in and went out per second; never less than none."""
        seconds = max(at - self._at, _LEAST_SECONDS)
        received = counts.received - self._counts.received
        written = counts.written - self._counts.written
        self._at, self._counts = at, counts
        return max(0.0, received / seconds), max(0.0, written / seconds)
