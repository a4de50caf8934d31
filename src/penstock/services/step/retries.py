"""What failed and is to be tried again, records and timers: what is known of each, and its log."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.backbone.client.logrecord import Partition
from penstock.core.records.deadletter import Coordinates
from penstock.core.units import span_text
from penstock.services.usererrors import LOG

__all__ = ["LOG_INTERVAL", "TRIES_UNTIL_DEGRADED", "Retried", "Retries"]

TRIES_UNTIL_DEGRADED = 2
"""After so many failed tries of one record its service is degraded: once may be chance."""

LOG_INTERVAL = timedelta(seconds=10)
"""A task logs its tries no more often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """A record that is held to be tried again, or a timer: then its offset is -1."""

    place: Coordinates
    failed: int
    """How many tries have failed."""
    tries: int
    """How many there are to be at most."""
    until: datetime
    reason: str

    @property
    def lasting(self) -> bool:
        """Return whether it has failed often enough to be told as trouble."""
        return self.failed >= TRIES_UNTIL_DEGRADED

    def words(self, now_at: datetime) -> str:
        """Return it for people: ``words[0] offset 5, try 3 of 101 in 2s: count raised ...``."""
        left = span_text(max(0.0, (self.until - now_at).total_seconds()))
        return f"{self._where}, try {self.failed + 1} of {self.tries} in {left}: {self.reason}"

    @property
    def trouble(self) -> str:
        """Return it as the reason why its service is degraded; the same after each try."""
        return f"{self._where} is tried up to {self.tries} times: {self.reason}"

    @property
    def _where(self) -> str:
        topic, partition, offset = self.place.topic, self.place.partition, self.place.offset
        return f"{topic}[{partition}]" + (f" offset {offset}" if offset >= 0 else "")


class Retries:
    """What of one task waits to be tried again; written by the worker, read by its reporter."""

    def __init__(self, service: str, *, clock: Callable[[], datetime]) -> None:
        self._service = service
        self._clock = clock
        self._held: dict[Coordinates, Retried] = {}
        self._log_at: datetime | None = None
        self._unlogged = 0

    def __iter__(self) -> Iterator[Retried]:
        """Return what waits now."""
        return iter(list(self._held.values()))

    def __bool__(self) -> bool:
        """Return whether anything waits."""
        return bool(self._held)

    def add(self, retried: Retried) -> None:
        """Take note of a failed try; the log gets the first, and one now and then."""
        self._held[retried.place] = retried
        now_at = self._clock()
        if self._log_at is not None and now_at < self._log_at:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} more since the last of these lines)" if self._unlogged else ""
        LOG.warning("%s holds %s%s", self._service, retried.words(now_at), more)
        self._log_at, self._unlogged = now_at + LOG_INTERVAL, 0

    def settle(self, place: Coordinates) -> None:
        """Hear that what stands here waits no more: it went well, or is given up."""
        self._held.pop(place, None)

    def pass_by(self, partition: Partition, offset: int) -> None:
        """Hear that everything of a partition before an offset is done."""
        for place in list(self._held):
            if (place.topic, place.partition) == partition and place.offset < offset:
                del self._held[place]
