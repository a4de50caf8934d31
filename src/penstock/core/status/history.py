"""The last hour of some numbers, sampled every few seconds, in memory that does not grow."""

from array import array
from collections import deque
from collections.abc import Mapping
from math import isnan, nan
from typing import NamedTuple

__all__ = ["EVERY_SECONDS", "KEPT", "MOST_SERIES", "History", "Series", "Trend", "trend"]

EVERY_SECONDS = 5.0
"""How far samples are apart."""
KEPT = 720
"""How many samples are kept: an hour."""
MOST_SERIES = 4000
"""The most numbers that are followed; further ones are not."""
_EMPTY = array("d", [nan]) * KEPT
_TREND_SECONDS = 60.0
_STEADY = 0.01
"""What changes by less than this part of itself in the time of a trend is steady."""


class Series(NamedTuple):
    """What a number belongs to, and which it is."""

    whose: str
    what: str


class History:
    """Keeps `KEPT` samples of each number; the oldest one makes room for the newest."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=KEPT)
        self._rings: dict[Series, array[float]] = {}
        self._taken = 0

    def take(self, at: float, values: Mapping[Series, float]) -> None:
        """Take the numbers of one moment; one that is followed and not given is unknown then."""
        slot = self._taken % KEPT
        for name in values:
            if name not in self._rings and len(self._rings) < MOST_SERIES:
                self._rings[name] = array("d", _EMPTY)
        for name, ring in self._rings.items():
            ring[slot] = values.get(name, nan)
        self._times.append(at)
        self._taken += 1
        if slot == KEPT - 1:
            self._rings = {
                name: ring for name, ring in self._rings.items() if not all(map(isnan, ring))
            }

    @property
    def names(self) -> tuple[Series, ...]:
        """Return the numbers that are followed."""
        return tuple(self._rings)

    def times(self) -> list[float]:
        """Return when the samples were taken, the oldest first."""
        return list(self._times)

    def values(self, name: Series, *, last: int = KEPT) -> list[float | None]:
        """Return the last samples of one number, the oldest first; None: it was not known then."""
        ring, count = self._rings.get(name), min(last, len(self._times))
        if ring is None:
            return [None] * count
        first = self._taken - count
        found = (ring[number % KEPT] for number in range(first, self._taken))
        return [None if isnan(value) else value for value in found]

    def lately(self, name: Series, *, seconds: float = _TREND_SECONDS) -> list[tuple[float, float]]:
        """Return the samples of the last seconds that are known, with their times."""
        ring = self._rings.get(name)
        if ring is None or not self._times:
            return []
        count = min(len(self._times), round(seconds / EVERY_SECONDS) + 1)
        pairs = (
            (self._times[len(self._times) - back], ring[(self._taken - back) % KEPT])
            for back in range(count, 0, -1)
        )
        return [(at, value) for at, value in pairs if not isnan(value)]


class Trend(NamedTuple):
    """Where a lag is going."""

    going: str
    """``empty``, ``falling``, ``growing``, ``steady``, ``keeping up`` or ``unknown``."""
    per_second: float = 0.0
    seconds_left: float | None = None
    """How long until it is empty; None: it does not get there."""


def trend(samples: list[tuple[float, float]]) -> Trend:
    """Return where a lag is going, from samples with their times.

    >>> trend([(0.0, 1000.0), (10.0, 800.0)])
    Trend(going='falling', per_second=-20.0, seconds_left=40.0)
    >>> trend([(0.0, 10.0), (10.0, 500.0)]).going
    'growing'
    """
    if samples and samples[-1][1] == 0:
        return Trend("empty")
    if len(samples) < 2 or samples[-1][0] <= samples[0][0]:  # noqa: PLR2004 - two make a line
        return Trend("unknown")
    (first_at, first), (last_at, last) = samples[0], samples[-1]
    change = last - first
    if abs(change) <= max(first, last) * _STEADY:
        return Trend("steady")
    rate = change / (last_at - first_at)
    if change > 0:
        return Trend("growing", rate)
    return Trend("falling", rate, last / -rate)
