"""Records and timers that are handled alone, because together they outlived their transaction.

A transaction is open from its first output to its commit, and a call of the user's code in between
counts. Whoever is alone in one cannot outlive it: the transaction begins behind the call.
"""

from collections.abc import Collection, Mapping
from datetime import datetime

from penstock.backbone.client.logrecord import Offsets, Partition

__all__ = ["Care"]


class Care:
    """Says whether a worker handles one thing at a time, and commits behind each.

    It does from where it has to begin again up to where it had come when it took too long, and
    until no timer waits that was due then: one of them may have been what took so long. Those that
    became due since do not count: where many go off all the time it would never come to an end.
    """

    def __init__(self) -> None:
        self._until: dict[Partition, int] = {}
        self._timers_until: datetime | None = None

    def __bool__(self) -> bool:
        """Return whether care is to be taken."""
        return self._timers_until is not None or bool(self._until)

    def needed(self, held: Collection[Partition]) -> bool:
        """Return whether it matters now: what is held to be tried again does not come."""
        return self._timers_until is not None or any(
            partition not in held for partition in self._until
        )

    def learn(self, reached: Offsets, *, now_at: datetime) -> None:
        """Hear how far the work had come that was too long for its transaction."""
        self._timers_until = now_at
        for partition, offset in reached.items():
            self._until[partition] = max(offset, self._until.get(partition, 0))

    def passed(
        self, positions: Mapping[Partition, int | None], *, wakes_at: datetime | None
    ) -> None:
        """Hear what is committed of the partitions that this worker has; None: not known yet.

        ``wakes_at`` is when the first of its timers is due; None: it has none.
        """
        until_at = self._timers_until
        if until_at is not None and (wakes_at is None or wakes_at > until_at):
            self._timers_until = None
        for partition, until in list(self._until.items()):
            position = positions.get(partition, until)
            if position is not None and position >= until:
                del self._until[partition]
