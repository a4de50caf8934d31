"""How a worker goes on: when it commits, how much it takes at once, how long that may take."""

from datetime import timedelta
from math import inf

from penstock.core.graph.parts import Service
from penstock.core.graph.signature import is_async
from penstock.core.settings.settings import ServiceSettings

__all__ = [
    "CommitSchedule",
    "Portion",
    "commit_interval",
    "longest_interval",
    "longest_slice",
    "portion_of",
    "seconds_to_wait",
]

_PARTS = 4
"""Waiting for a commit, and the work before it, each take at most so small a part of a time-out."""

_LEAST_PORTION_SECONDS = 0.05
"""What is taken at once is worth this much time, however often there is a commit."""
_IDLE_SECONDS = 0.25
_TAKEOVER_SECONDS = 0.02
"""How long a worker waits for records when nothing is due, and while tasks are coming up."""


def longest_slice(settings: ServiceSettings) -> timedelta:
    """Return how long a worker may work before it looks up, whatever there is to do.

    A part of every time-out that it works under: that of its transaction, of its membership, and of
    a stop. One call of the user's code may take longer: it is not interrupted.
    """
    bounds = (settings.transaction_timeout, settings.poll_interval, settings.stop_timeout)
    return min(bounds) / _PARTS


def longest_interval(settings: ServiceSettings) -> timedelta:
    """Return how long results may wait for their commit, where they wait in a transaction."""
    return min(settings.commit_interval, settings.transaction_timeout / _PARTS)


def commit_interval(service: Service, settings: ServiceSettings) -> timedelta:
    """Return how long the results of a service wait for their commit.

    Answers and live queries wait for a shorter time than other results: somebody looks at each.
    """
    if service.delivery != "exactly_once":
        return settings.commit_interval
    longest = longest_interval(settings)
    if service.live:
        return min(longest, settings.live_interval)
    return min(longest, settings.answer_interval) if service.answers else longest


def portion_of(service: Service, settings: ServiceSettings) -> "Portion":
    """Return how many records a worker of a service takes at once, to begin with."""
    most, a_slice = settings.poll_batch, longest_slice(settings).total_seconds()
    if is_async(service.function):
        # Calls overlap: the more come together, the less one that is slow holds up.
        return Portion(most, seconds=a_slice / 2, least=service.concurrency)
    seconds = max(commit_interval(service, settings).total_seconds(), _LEAST_PORTION_SECONDS)
    return Portion(most, seconds=min(seconds, a_slice))


def seconds_to_wait(
    now: float, *, commit_at: float, coming_up: bool, wakes_in: float | None
) -> float:
    """Return how long a worker may wait for records.

    ``coming_up``: a task is, and should not wait for long. ``wakes_in`` are the seconds until the
    clock makes something due; None: it does not.
    """
    longest = _TAKEOVER_SECONDS if coming_up else _IDLE_SECONDS
    if wakes_in is not None:
        longest = min(longest, wakes_in)
    return max(0.0, min(longest, commit_at - now))


class Portion:
    """How many records a worker takes at once, so that they take it about ``seconds``.

    The most where the function is quick. Where it is slow they are fewer, though not fewer than are
    handled at the same time: what was taken and cannot be handled in time has to be fetched again.
    """

    def __init__(self, most: int, *, seconds: float, least: int = 1) -> None:
        self.count = most
        """How many to take."""
        self._most = most
        self._least = min(least, most)
        self._seconds = seconds

    def took(self, seconds: float, *, records: int) -> None:
        """Hear how long records took."""
        if seconds > self._seconds:
            self.count = max(self._least, min(self.count, int(records * self._seconds / seconds)))
        elif records >= self.count and seconds < self._seconds / 2:
            self.count = min(self._most, 2 * self.count)


class CommitSchedule:
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

    def committed(self, *, began: float, ended: float) -> None:
        """Hear that everything is committed."""
        self._began, self._ended, self.commit_at = began, ended, inf
