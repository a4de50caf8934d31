"""When a run is over: all input is in, the watermark has passed it, and nobody is behind.

The input is sent in parts, each when every pipeline has taken in the one before: so it is a stream
of several batches to everybody, and what is late comes after its time. The watermark moves only
with records. So with the last part taken in, one more event is sent, in which nothing happens but
time: it is later than anything that could still be open. It must not come earlier. A pipeline may
be further in one partition than in another, and would then call late what it has yet to read.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable
from datetime import timedelta

from nexmark import CLOSED_BY_WATERMARK, FED_BY

from penstock.core.status.report import PartReport
from penstock.errors import TransientError

__all__ = ["Ending"]

PATIENCE = timedelta(minutes=30)
"""How long a run may take from one step to the next."""


class Ending:
    """Takes the reports of pipelines and sets ``stop`` when they have done everything.

    ``sends`` are called in turn, each when all that was sent before is in; the last one sends the
    end. ``passed`` says the watermark (in milliseconds) after which nothing is open. Reports come
    one after the other, each made after the one before was taken.
    """

    def __init__(
        self,
        names: Collection[str],
        stop: threading.Event,
        *,
        sends: Iterable[Callable[[], None]],
        passed: Callable[[], int],
    ) -> None:
        self._passed = passed
        first = {name for name in names if name not in FED_BY}
        self._steps: list[tuple[set[str], Callable[[PartReport], bool], Callable[[], None]]] = [
            *((set(first), _is_through, send) for send in sends),
            (set(first), self._is_closed, _nothing),
            ({name for name in names if name in FED_BY}, _is_through, stop.set),
        ]
        self._deadline = _deadline()
        self.dropped: dict[str, int] = {}
        """How many rows of each pipeline came later than its stream allows."""

    def report(self, report: PartReport) -> None:
        """Take note of a report; TransientError if nothing has gone on for too long."""
        self.dropped[report.part] = round(report.metrics.get("dropped_rows_total", 0))
        if not self._steps:
            return
        waiting, is_done, _ = self._steps[0]
        if report.part in waiting and is_done(report):
            waiting.discard(report.part)
        while self._steps and not self._steps[0][0]:
            self._steps.pop(0)[2]()
            self._deadline = _deadline()
        if self._steps and time.monotonic() > self._deadline:
            raise TransientError(
                f"{', '.join(sorted(waiting))} made no end within {PATIENCE}",
                code="nexmark.stuck",
                detail=str(report),
            )

    def _is_closed(self, report: PartReport) -> bool:
        if not _is_through(report):
            return False
        return report.part not in CLOSED_BY_WATERMARK or _watermark(report) >= self._passed()


def _is_through(report: PartReport) -> bool:
    return report.lag == 0


def _watermark(report: PartReport) -> int:
    """Return the watermark of the last batch that was done, in milliseconds."""
    return round(report.metrics.get("watermark_timestamp_seconds", 0) * 1000)


def _nothing() -> None:
    """Go on without doing anything."""


def _deadline() -> float:
    return time.monotonic() + PATIENCE.total_seconds()
