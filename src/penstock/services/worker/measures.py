"""What a worker measures of itself: how long things take, how often it began anew, what it lost."""

from penstock.backbone.client.logrecord import Partition
from penstock.core.status.histogram import Histogram

__all__ = ["Measures", "MonotonicCounter", "Skipped"]


class Skipped:
    """Offsets that retention deleted before they were read; each is counted once."""

    def __init__(self) -> None:
        self.offsets = 0
        self._last: dict[Partition, tuple[int, int]] = {}

    def see(self, partition: Partition, start: int, end: int) -> None:
        """Take note that a partition was not read from one offset to another.

        The same is heard again, or more of it, where a task begins anew before it has committed.
        """
        known = self._last.get(partition)
        if known is not None and start <= known[1]:
            self.offsets -= known[1] - known[0]
            start, end = min(start, known[0]), max(end, known[1])
        self.offsets += max(0, end - start)
        self._last[partition] = (start, end)


class MonotonicCounter:
    """Counts over the tasks that are here now, kept from falling when one goes.

    Prometheus takes a counter that falls for one that began anew, and counts all of it again.
    """

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._gone: dict[str, float] = {}

    def never_less(self, name: str, count: float) -> float:
        """Return the count with what tasks that went had counted."""
        fallen = max(0.0, self._last.get(name, 0.0) - count)
        self._gone[name] = self._gone.get(name, 0.0) + fallen
        self._last[name] = count
        return count + self._gone[name]


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
        """How often this worker began again after trouble."""

    def series(self) -> dict[str, float]:
        """Return everything as series of Prometheus."""
        return {
            "restarts_total": self.restarts,
            **dict(self.process.series("process_seconds")),
            **dict(self.commit.series("commit_seconds")),
            **dict(self.latency.series("end_to_end_seconds")),
        }
