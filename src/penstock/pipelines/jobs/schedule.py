"""When the next run of a job begins; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from penstock.backbone.client.logrecord import Partition
from penstock.core.backoff import Backoff

__all__ = ["Schedule"]

_SECOND = 1_000


@dataclass(slots=True)
class Schedule:
    """Says whether a run is due, from when the last one began and what has asked since.

    Times are milliseconds since 1970, so that they outlive the process.
    """

    every: timedelta
    rest: timedelta
    last_at: int | None = None
    """When the last run began that was written."""
    heard: Mapping[Partition, int] = field(default_factory=dict)
    """Up to which offsets that run has heard what asked for it."""
    failures: int = 0
    """Runs that failed since."""
    tried_at: int | None = None
    """When the last of those began."""

    def next_at(self, ends: Mapping[Partition, int]) -> int:
        """Return when the next run is due, given the ends of what may ask for one."""
        due = 0
        if self.last_at is not None:
            span = self.rest if self.is_asked(ends) else max(self.every, self.rest)
            due = self.last_at + _milliseconds(span)
        if self.failures and self.tried_at is not None:
            waits = Backoff(self.rest, max(self.every, self.rest))
            due = max(due, self.tried_at + _milliseconds(waits.delay(self.failures)))
        return due

    def is_asked(self, ends: Mapping[Partition, int]) -> bool:
        """Return whether something has asked since the last run."""
        return any(end > self.heard.get(each, 0) for each, end in ends.items())

    def done(self, at: int, heard: Mapping[Partition, int]) -> None:
        """Take note of a run that was written."""
        self.last_at, self.heard, self.failures = at, dict(heard), 0

    def failed(self, at: int) -> None:
        """Take note of a run that failed."""
        self.tried_at, self.failures = at, self.failures + 1


def _milliseconds(span: timedelta) -> int:
    return round(span.total_seconds() * _SECOND)
