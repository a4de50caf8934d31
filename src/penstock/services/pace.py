"""When a worker commits: soon where it keeps up, in large pieces where it is behind."""

from math import inf

__all__ = ["Pace"]


class Pace:
    """Chooses the moment of the next commit, in seconds of a clock that never goes back.

    A worker with a backlog commits an ``interval`` after the first record: commits cost, and nobody
    waits for the single record. One that keeps up commits an interval after the last commit
    *began*, at once after a quiet time: then a record waits for little more than the interval. At
    least half an interval is left for work between two commits, however long they take.
    """

    def __init__(self, interval: float) -> None:
        self.commit_at = inf
        """When to commit; infinity: there is nothing to commit."""
        self._interval = interval
        self._began = self._ended = -inf

    def took(self, now: float, *, backlog: bool) -> None:
        """Hear that there is something new to commit."""
        if backlog:
            due = now + self._interval
        else:
            due = max(now, self._began + self._interval, self._ended + self._interval / 2)
        self.commit_at = min(self.commit_at, due)

    def hurry(self, now: float) -> None:
        """Commit as soon as possible."""
        self.commit_at = min(self.commit_at, now)

    def committed(self, *, began: float, ended: float) -> None:
        """Hear that everything is committed."""
        self._began, self._ended, self.commit_at = began, ended, inf
