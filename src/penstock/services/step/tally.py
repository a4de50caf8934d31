"""The counts of one task: what is committed, and what a crash would take back."""

from penstock.core.status.report import Counts

__all__ = ["Tally", "total"]


class Tally:
    """Counts input records by what became of them.

    What was counted since the last commit shows as in flight: it becomes final with
    :meth:`commit`, and is forgotten with the task that is thrown away, because its records will be
    read again. So the law of :class:`Counts` holds at every moment, over crashes too.
    """

    __slots__ = ("_done", "dead_lettered", "filtered", "passed", "written")

    def __init__(self) -> None:
        self.passed = 0
        self.filtered = 0
        self.dead_lettered = 0
        self.written = 0
        self._done = Counts()

    @property
    def pending(self) -> int:
        """Return how many records were handled since the last commit."""
        return self.passed + self.filtered + self.dead_lettered

    def commit(self) -> None:
        """Make everything counted so far final."""
        self._done = total(
            self._done,
            Counts(
                received=self.pending,
                passed=self.passed,
                filtered=self.filtered,
                dead_lettered=self.dead_lettered,
                written=self.written,
            ),
        )
        self.discard()

    def discard(self) -> None:
        """Forget what was counted since the last commit."""
        self.passed = self.filtered = self.dead_lettered = self.written = 0

    def counts(self) -> Counts:
        """Return the counts, the uncommitted records in flight."""
        return total(self._done, Counts(received=self.pending, in_flight=self.pending))

    def committed(self) -> Counts:
        """Return the final counts alone."""
        return self._done


def total(*counts: Counts) -> Counts:
    """Return the sum, which is balanced where each of them is."""
    return Counts(
        received=sum(one.received for one in counts),
        passed=sum(one.passed for one in counts),
        filtered=sum(one.filtered for one in counts),
        dead_lettered=sum(one.dead_lettered for one in counts),
        in_flight=sum(one.in_flight for one in counts),
        written=sum(one.written for one in counts),
    )
