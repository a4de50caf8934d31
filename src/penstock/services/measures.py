"""What a worker measures of itself: how long things take, and how often it began again."""

from bisect import bisect_left
from collections.abc import Iterator

__all__ = ["Histogram", "Measures"]

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Histogram:
    """Seconds, counted by how many there were; bounded whatever comes."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._sum = 0.0

    def see(self, seconds: float) -> None:
        """Take note of one duration."""
        self._counts[bisect_left(_BOUNDS, seconds)] += 1
        self._sum += seconds

    def series(self, name: str) -> Iterator[tuple[str, float]]:
        """Yield the series of a Prometheus histogram."""
        below = 0
        for bound, count in zip(_BOUNDS, self._counts, strict=False):
            below += count
            yield f'{name}_bucket{{le="{bound:g}"}}', below
        yield f'{name}_bucket{{le="+Inf"}}', sum(self._counts)
        yield f"{name}_sum", self._sum
        yield f"{name}_count", sum(self._counts)


class Measures:
    """The measures of one worker; written by its thread, read by the reporter's."""

    def __init__(self) -> None:
        self.handling_seconds = 0.0
        """Time spent in handling records."""
        self.commit = Histogram()
        """How long commits take."""
        self.latency = Histogram()
        """From the writing of the oldest record of a commit to the end of that commit."""
        self.restarts = 0
        """How often this worker, or one of its shares, began again after trouble."""

    def series(self) -> dict[str, float]:
        """Return everything as series of Prometheus."""
        return {
            "handling_seconds_total": self.handling_seconds,
            "restarts_total": self.restarts,
            **dict(self.commit.series("commit_seconds")),
            **dict(self.latency.series("end_to_end_seconds")),
        }
