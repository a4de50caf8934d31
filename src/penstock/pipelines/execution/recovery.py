"""When a pipeline that failed is started again, and when its failures have lasted too long."""

from datetime import timedelta

from penstock.core.backoff import Backoff
from penstock.errors import TransientError

__all__ = ["Recovery"]


class Recovery:
    """The failures of one pipeline that a new start may get over.

    Failures in a row are answered with growing waits, and may go on for ``limit``. A row ends when
    the pipeline has finished a batch, or has run well for longer than the longest waits. It decides
    and does nothing: whoever asks says what the clock shows, ``now``, in seconds.
    """

    def __init__(self, backoff: Backoff, *, limit: timedelta) -> None:
        self.trouble: TransientError | None = None
        """The failure after which the pipeline was not started again yet."""
        self._backoff = backoff
        self._limit = limit.total_seconds()
        self._delays = backoff.delays()
        self._since: float | None = None
        self._well_since: float | None = None
        self._due_at = 0.0

    def has_lasted(self, now: float) -> bool:
        """Take note of a failure; return whether the row of failures is longer than the limit."""
        if self._since is None:
            self._since = now
        return now - self._since > self._limit

    def wait_after(self, trouble: TransientError, now: float) -> float:
        """Return in how many seconds the pipeline is started again."""
        self.trouble, self._well_since = trouble, None
        wait = next(self._delays)
        self._due_at = now + wait
        return wait

    def is_waiting(self, now: float) -> bool:
        """Return whether the time of the next start has not come yet."""
        return self.trouble is not None and now < self._due_at

    def started(self) -> None:
        """Take note of a start; whether it is well shows later."""
        self.trouble = None

    def look(self, now: float, *, running: bool, advanced: bool) -> None:
        """Take note of how it runs, and whether it has finished a batch since the last look."""
        if not running:
            self._well_since = None
        elif self._well_since is None:
            self._well_since = now
        well = self._well_since is not None and self._backoff.is_over(now - self._well_since)
        if advanced or well:
            self._since, self._delays = None, self._backoff.delays()
