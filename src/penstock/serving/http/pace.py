"""How often one caller may call: so many times a second, with some at once."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["BURST_SECONDS", "Pace"]

BURST_SECONDS = 10
"""What was not called in so many seconds may be called at once."""
_CALLERS = 10_000
"""So many callers are remembered; who was silent longest is forgotten, and begins anew."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Pace:
    """Counts the calls of each caller against ``per_second``; 0: any number."""

    def __init__(self, per_second: int, *, clock: Callable[[], float]) -> None:
        self._rate = per_second
        self._most = float(per_second * BURST_SECONDS)
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Count a call; return 0, or the seconds after which the next one will be taken."""
        if not self._rate:
            return 0.0
        now = self._clock()
        bucket = self._buckets.pop(caller, None) or _Bucket(self._most, now)
        self._buckets[caller] = bucket
        if len(self._buckets) > _CALLERS:
            self._buckets.popitem(last=False)
        bucket.left = min(self._most, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.left < 1:
            return (1 - bucket.left) / self._rate
        bucket.left -= 1
        return 0.0
