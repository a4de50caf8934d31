"""What a worker measures of itself: how long things take, how often it began anew, what it lost."""

from bisect import bisect_left
from collections.abc import Iterator

from penstock.backbone.logrecord import Partition

__all__ = ["Histogram", "Measures", "Skipped"]

_BOUNDS = (
    0.00001,
    0.0001,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)


class Histogram:
    """Seconds, counted by how many there were; bounded whatever comes."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._sum = 0.0

    def see(self, seconds: float, *, times: int = 1) -> None:
        """Take note of a duration that came so many times."""
        self._counts[bisect_left(_BOUNDS, seconds)] += times
        self._sum += seconds * times

    def series(self, name: str) -> Iterator[tuple[str, float]]:
        """Yield the series of a Prometheus histogram."""
        below = 0
        for bound, count in zip(_BOUNDS, self._counts, strict=False):
            below += count
            yield f'{name}_bucket{{le="{bound:g}"}}', below
        yield f'{name}_bucket{{le="+Inf"}}', sum(self._counts)
        yield f"{name}_sum", self._sum
        yield f"{name}_count", sum(self._counts)


class Skipped:
    """Offsets that retention deleted before they were read; each is counted once."""

    def __init__(self) -> None:
        self.offsets = 0
        self._ends: dict[Partition, int] = {}

    def see(self, partition: Partition, start: int, end: int) -> None:
        """Take note that a partition was not read from one offset to another.

        The same is heard again where a task begins anew before it has committed.
        """
        known = max(start, self._ends.get(partition, 0))
        self.offsets += max(0, end - known)
        self._ends[partition] = max(known, end)


class Measures:
    """The measures of one worker; written by its thread, read by the reporter's."""

    def __init__(self) -> None:
        self.process = Histogram()
        """How long a record takes to be handled; one batch gives all of its records its mean."""
        self.commit = Histogram()
        """How long commits take."""
        self.latency = Histogram()
        """From the writing of the oldest record of a commit to the end of that commit."""
        self.restarts = 0
        """How often this worker, or one of its shares, began again after trouble."""
        self.skipped = Skipped()

    def series(self) -> dict[str, float]:
        """Return everything as series of Prometheus."""
        return {
            "restarts_total": self.restarts,
            "skipped_offsets_total": self.skipped.offsets,
            **dict(self.process.series("process_seconds")),
            **dict(self.commit.series("commit_seconds")),
            **dict(self.latency.series("end_to_end_seconds")),
        }
