"""What one progress report of a query says, as Spark gives it: read here, added up elsewhere."""

import json
import re
from collections.abc import Mapping
from datetime import MAXYEAR, datetime
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from penstock.pipelines.checkpoint.batches import Offsets, PlannedBatch, offsets_of

__all__ = [
    "Progress",
    "batch_seconds",
    "dropped_rows",
    "event_times",
    "identity",
    "observed",
    "offsets",
    "planned",
    "recent_progress",
    "step_seconds",
    "was_batch",
]

Progress = Mapping[str, Any]

_WHOLE = "triggerExecution"
_MILLISECONDS = 1000.0
_CYCLE_YEARS, _CYCLE_SECONDS = 400, 146_097 * 86_400
"""After so many years the calendar repeats itself."""


def identity(progress: Progress) -> tuple[int, str]:
    """Return a sort key for progress: an idle query reports its next batch again and again."""
    return progress["batchId"], progress["timestamp"]


def was_batch(progress: Progress) -> bool:
    """Whether a batch ran; Spark also reports checks that found no data."""
    return "addBatch" in progress["durationMs"]


def observed(progress: Progress, what: str) -> list[dict[str, Any]]:
    """Return the observed rows that have this count."""
    rows = [row.asDict() for row in (progress["observedMetrics"] or {}).values()]
    return [row for row in rows if what in row]


def offsets(progress: Progress) -> tuple[Offsets, Offsets]:
    """Return where the batch began, and where it ended."""
    start: Offsets = {}
    end: Offsets = {}
    for source in progress["sources"]:
        start |= offsets_of(source["startOffset"])
        end |= offsets_of(source["endOffset"])
    return start, end


def planned(progress: Progress) -> PlannedBatch | None:
    """Return what Spark planned the batch with; None if the progress is incomplete."""
    _, end = offsets(progress)
    at = _instant((progress["eventTime"] or {}).get("watermark"))
    if at is None or not end:
        return None
    return PlannedBatch(end, round(at * _MILLISECONDS))


def recent_progress(query: StreamingQuery, after: tuple[int, str]) -> list[Progress]:
    """Return the progress that came after some other, oldest first, as far as Spark keeps it.

    Only what is new is brought from the JVM: Spark keeps a good deal more.
    """
    found: list[Progress] = []
    for each in reversed(query._jsq.recentProgress()):  # noqa: SLF001 - the public way brings all
        if (each.batchId(), each.timestamp()) <= after:
            break
        found.append(StreamingQueryProgress.fromJson(json.loads(each.json())))
    return found[::-1]


def dropped_rows(progress: Progress) -> int:
    """Return how many rows Spark dropped because they were behind its watermark."""
    return sum(each["numRowsDroppedByWatermark"] for each in progress["stateOperators"])


def batch_seconds(progress: Progress) -> float:
    """Return how long the whole batch took."""
    return float(progress["durationMs"].get(_WHOLE, 0)) / _MILLISECONDS


def step_seconds(progress: Progress) -> dict[str, float]:
    """Return what each step of the batch took, in the order of the steps' cost."""
    steps = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): spent / _MILLISECONDS
        for name, spent in progress["durationMs"].items()
        if name != _WHOLE
    }
    return dict(sorted(steps.items(), key=lambda step: -step[1]))


def event_times(progress: Progress) -> tuple[float | None, float | None]:
    """Return Spark's own watermark and the newest event time of the batch, since the epoch.

    They are as Spark's operators have them: those of our windows are shifted.
    """
    found = progress["eventTime"] or {}
    # Spark says 1970 as long as it has seen no event time.
    return _instant(found.get("watermark")) or None, _instant(found.get("max"))


def _instant(text: str | None) -> float | None:
    if text is None:
        return None
    year, rest = text.split("-", 1)
    # Shifted event times reach past the years that Python has.
    cycles = max(0, -(-(int(year) - MAXYEAR) // _CYCLE_YEARS))
    at = datetime.fromisoformat(f"{int(year) - cycles * _CYCLE_YEARS:04}-{rest}")
    return at.timestamp() + cycles * _CYCLE_SECONDS
