"""Which offsets each batch of a query took, and the watermark that it took them with.

What is late is known only together with the batch that it came in. Spark says it in the progress of
a batch, of which it keeps a number, and in its offset log, which keeps the last hundred batches.
A batch that is in neither any more is skipped: its records are never judged by another's watermark.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from penstock.pipelines.checkpoint.batches import Offsets, PlannedBatch

__all__ = ["BatchTrail", "TakenBatch"]

_BEFORE_ALL = PlannedBatch({}, 0)


@dataclass(frozen=True, slots=True)
class TakenBatch:
    """A finished batch: its offsets, and the watermark that its records were late for."""

    start: Offsets
    end: Offsets
    watermark: int
    """In milliseconds, as Spark has it."""
    dropped: bool
    """Whether records of it may have been late."""


class BatchTrail:
    """Follows the batches of one query, each once.

    ``known`` names the batches that can still be looked up, with ``planned``; None: that one was
    forgotten meanwhile.
    """

    def __init__(
        self, known: Callable[[], Collection[int]], planned: Callable[[int], PlannedBatch | None]
    ) -> None:
        self._known = known
        self._planned = planned
        self._last: tuple[int, PlannedBatch] = (-1, _BEFORE_ALL)

    def begin(self, after: int) -> None:
        """Begin behind a batch that was followed before."""
        found = self._planned(after) if after >= 0 else _BEFORE_ALL
        # Where it is forgotten, the first batch that is followed has no beginning.
        self._last = (after, found) if found else (after - 1, _BEFORE_ALL)

    def follow(
        self, batch: int, *, dropped: bool, from_progress: PlannedBatch | None = None
    ) -> Iterator[TakenBatch]:
        """Yield the batches up to this one that were not followed yet, as far as they are known.

        Of a batch whose end nobody saw, it is also unknown whether it dropped records.
        ``from_progress`` is what the progress of this batch says.
        """
        if batch > self._last[0] + 1:
            for missed in sorted(self._known()):
                if self._last[0] < missed < batch:
                    yield from self._take(missed, self._planned(missed), dropped=True)
        if batch > self._last[0]:
            yield from self._take(batch, from_progress or self._planned(batch), dropped=dropped)

    def _take(
        self, batch: int, planned: PlannedBatch | None, *, dropped: bool
    ) -> Iterator[TakenBatch]:
        if planned is None:
            return
        (followed, before), self._last = self._last, (batch, planned)
        if followed == batch - 1:
            yield TakenBatch(before.end, planned.end, before.watermark, dropped)
