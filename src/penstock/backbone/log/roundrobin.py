"""Partitions in turn, for streams whose keys do not decide."""

import time
from collections.abc import Callable

__all__ = ["RoundRobin"]


class RoundRobin:
    """Gives each topic's partitions in turn.

    ``count`` asks the cluster how many there are; the answer is used for a minute, so that added
    partitions are found.
    """

    def __init__(
        self,
        count: Callable[[str], int],
        *,
        clock: Callable[[], float] = time.monotonic,
        fresh_seconds: float = 60.0,
    ) -> None:
        self._count = count
        self._clock = clock
        self._fresh_seconds = fresh_seconds
        self._known: dict[str, tuple[int, float]] = {}
        self._next: dict[str, int] = {}

    def choose(self, topic: str) -> int:
        """Return the partition for the next record of a topic."""
        partitions, stale_at = self._known.get(topic, (0, 0.0))
        if not partitions or self._clock() >= stale_at:
            partitions = self._count(topic)
            self._known[topic] = (partitions, self._clock() + self._fresh_seconds)
        number = self._next.get(topic, 0) % partitions
        self._next[topic] = number + 1
        return number
