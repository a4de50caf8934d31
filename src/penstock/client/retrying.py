"""When a request is sent again: a decision without a clock and without I/O."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.client.limits import ClientLimits
from penstock.core.backoff import Backoff

__all__ = ["Retries"]

_LEAST_PART = 0.5
"""A wait is at least this part of its length; the rest is random, so that callers spread."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How long to wait before a request is sent again; ``random`` gives numbers from 0 to 1."""

    limits: ClientLimits
    random: Callable[[], float]

    def wait(self, failures: int, *, passed: float, asked: float = 0.0) -> float | None:
        """Return the seconds to wait after so many failures in a row; None: give up.

        ``passed`` is how long the call has taken so far, ``asked`` what Retry-After said, which is
        never cut short: who is told to wait longer than the call may take gives up at once.
        """
        limits = self.limits
        if failures >= limits.attempts:
            return None
        longest = Backoff(limits.first_wait, limits.longest_wait).delay(failures).total_seconds()
        spread = _LEAST_PART + (1 - _LEAST_PART) * self.random()
        wait = max(longest * spread, asked)
        return wait if passed + wait < limits.patience.total_seconds() else None
