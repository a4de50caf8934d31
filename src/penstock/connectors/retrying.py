"""Runs sessions of a source or a sink one after another, until one comes to its end."""

from collections.abc import Callable
from datetime import timedelta
from threading import Event

from penstock.connectors.connector import AWAY
from penstock.connectors.progress import Progress
from penstock.core.backoff import Backoff
from penstock.errors import TransientError

__all__ = ["Retries", "keep_trying"]

_BACKOFF = Backoff(timedelta(seconds=0.2), timedelta(seconds=5))
_RETRIES = 20
"""Failures in a row, about a minute and a half of them, before the part gives up.

Where an outside system is away it never does: nothing is lost by waiting.
"""


class Retries:
    """Failures in a row, and how long to wait after each."""

    def __init__(self) -> None:
        self._failures = 0

    def failed(self, *, away: bool = False) -> float | None:
        """Return how long to wait before the next attempt, None: there were too many failures."""
        self._failures += 1
        if self._failures > _RETRIES:
            if not away:
                return None
            self._failures = _RETRIES
        return _BACKOFF.delay(self._failures).total_seconds()

    def succeeded(self) -> None:
        """Begin to count anew: something was committed."""
        self._failures = 0


def keep_trying(
    session: Callable[[], None], *, retries: Retries, stop: Event, progress: Progress
) -> None:
    """Run sessions until one returns or a stop is asked for; what is transient is tried again."""
    while not stop.is_set():
        try:
            session()
        except TransientError as error:
            wait = retries.failed(away=error.code == AWAY)
            if wait is None:
                raise
            progress.undone()
            progress.degraded(error.message)
            stop.wait(wait)
        else:
            return
