"""When a source commits, and how long it waits: decisions without I/O or a clock.

Every instant is given, in seconds that only grow.
"""

from collections import Counter
from datetime import timedelta

from penstock.connectors.source.outlet import Outcome

__all__ = ["KEEP_SECONDS", "GivingUp", "Idle", "Unsettled", "slice_seconds"]

_SLICE_SECONDS = 1.0
"""How long items wait for those behind them, at most, before they are written."""
_SLICES_PER_STOP = 4
KEEP_SECONDS = 3600.0
"""How often a source that reads nothing writes its position again.

A cluster forgets a transactional id that was not used for a week.
"""
_UNSETTLED_ITEMS = 2_000
_UNSETTLED_SECONDS = 0.1


def slice_seconds(stop_timeout: timedelta) -> float:
    """Return how long the user's code may make records before they are written."""
    return min(_SLICE_SECONDS, stop_timeout.total_seconds() / _SLICES_PER_STOP)


class Idle:
    """How long nothing was committed, and whether a position has to be written again."""

    def __init__(self, at: float) -> None:
        self._committed_at = at

    def committed(self, at: float) -> None:
        """Take note of a commit."""
        self._committed_at = at

    def keep_due(self, at: float) -> bool:
        """Return whether the producer was idle for so long that it has to write something."""
        return at - self._committed_at >= KEEP_SECONDS


class Unsettled:
    """What became of the items that the log has not acknowledged; few of them, and not for long."""

    def __init__(self, at: float) -> None:
        self._outcomes: Counter[Outcome] = Counter()
        self._settled_at = at

    def __len__(self) -> int:
        """Return how many there are."""
        return self._outcomes.total()

    def add(self, outcome: Outcome) -> None:
        """Take note of one more."""
        self._outcomes[outcome] += 1

    def due(self, at: float) -> bool:
        """Return whether to wait for the log before another item is taken."""
        many = len(self) >= _UNSETTLED_ITEMS
        return many or at - self._settled_at >= _UNSETTLED_SECONDS

    def settle(self, at: float) -> Counter[Outcome]:
        """Return the outcomes that are acknowledged now, and begin anew."""
        settled, self._outcomes = self._outcomes, Counter()
        self._settled_at = at
        return settled


class GivingUp:
    """How long a source waits for a Kafka that is away: for ever, and at a stop for a while."""

    def __init__(self, stop_timeout: timedelta) -> None:
        self._seconds = stop_timeout.total_seconds()
        self._at: float | None = None

    def due(self, at: float, *, stopping: bool) -> bool:
        """Return whether it has waited long enough; its time begins at the first look at a stop."""
        if not stopping:
            return False
        if self._at is None:
            self._at = at + self._seconds
        return at >= self._at
