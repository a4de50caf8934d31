"""Notice a batch that does not end, because the progress of its query does not show it."""

import time
from collections.abc import Callable
from datetime import timedelta

from penstock.core.units import span_text

__all__ = ["BatchWatch"]


class BatchWatch:
    """Receives, again and again, whether a batch is running and the last progress."""

    def __init__(self, limit: timedelta, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit.total_seconds()
        self._clock = clock
        self._seen: object = None
        self._since = clock()

    def trouble(self, *, active: bool, seen: object) -> str:
        """Return a message about a batch that exceeds the limit; empty if there is none."""
        now = self._clock()
        if not active or seen != self._seen:
            self._seen, self._since = seen, now
        lasted = now - self._since
        if lasted < self._limit:
            return ""
        return (
            f"a batch has not ended for {span_text(lasted)}: its function may be stuck, "
            "or spark.batch_limit too short"
        )
