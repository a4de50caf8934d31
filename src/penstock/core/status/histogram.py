"""A histogram of durations, in the form of Prometheus."""

from bisect import bisect_left
from collections.abc import Iterator

from penstock.core.status.exposition import series

__all__ = ["Histogram"]

_BOUNDS = (
    *(0.00001, 0.0001, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)


class Histogram:
    """Counts durations in fixed buckets; its size does not grow."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._sum = 0.0

    def see(self, seconds: float, *, times: int = 1) -> None:
        """Count a duration, as often as it came."""
        self._counts[bisect_left(_BOUNDS, seconds)] += times
        self._sum += seconds * times

    def series(self, name: str) -> Iterator[tuple[str, float]]:
        """Yield the series of a Prometheus histogram."""
        below = 0
        for bound, count in zip(_BOUNDS, self._counts, strict=False):
            below += count
            yield series(f"{name}_bucket", le=f"{bound:g}"), below
        yield series(f"{name}_bucket", le="+Inf"), sum(self._counts)
        yield f"{name}_sum", self._sum
        yield f"{name}_count", sum(self._counts)
