"""Records and timers that are handled alone, because together they outlived their transaction.

A transaction is open from its first output to its commit, and a call of the user's code in between
counts. Whoever is alone in one cannot outlive it: the transaction begins behind the call.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from penstock.backbone.client.logrecord import Offsets, Partition

__all__ = ["Care"]

_PART = 2
"""Work that fails after such a part of the transaction's time-out has failed for its length."""


class Care:
    """Says whether a worker handles one thing at a time, and commits behind each.

    It does from where it has to begin again up to where it had come when it took too long, and
    until no timer waits that was due then: one of them may have been what took so long. Those that
    became due since do not count: where many go off all the time it would never come to an end.

    ``timeout`` is that of a transaction; None: the work is not in one, and needs no care.
    """

    def __init__(self, timeout: timedelta | None = None) -> None:
        self._limit = None if timeout is None else (timeout / _PART).total_seconds()
        self._since: float | None = None
        """Since when there is work that is not committed, in seconds of the monotonic clock."""
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

    @property
    def clean(self) -> bool:
        """Return whether nothing was done since the last commit."""
        return self._since is None

    def begin(self, now: float) -> None:
        """Hear that work begins."""
        if self._since is None:
            self._since = now

    def forget(self) -> None:
        """Hear that nothing is left uncommitted: it is committed, or came to nothing."""
        self._since = None

    def failed(self, reached: Offsets, *, now: float, now_at: datetime) -> None:
        """Hear how far work had come that failed; care is taken where it took so long."""
        if self._limit is None or self._since is None:
            return
        if now - self._since > self._limit:
            self.learn(reached, now_at=now_at)

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
