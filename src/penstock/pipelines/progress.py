"""What one progress report of a query says, as Spark gives it: read here, added up elsewhere."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from penstock.pipelines.checkpoint import Offsets, offsets_of

__all__ = [
    "Progress",
    "batch_seconds",
    "dropped_rows",
    "event_times",
    "identity",
    "observed",
    "offsets",
    "step_seconds",
    "was_batch",
]

Progress = Mapping[str, Any]

_WHOLE = "triggerExecution"
_MILLISECONDS = 1000.0


def identity(progress: Progress) -> tuple[int, str]:
    """Return what orders progress: an idle query reports its next batch, again and again."""
    return progress["batchId"], progress["timestamp"]


def was_batch(progress: Progress) -> bool:
    """Whether a batch was made; Spark also reports that it looked and found nothing."""
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


def dropped_rows(progress: Progress) -> int:
    """Return how many rows Spark dropped because they were behind its watermark."""
    return sum(each["numRowsDroppedByWatermark"] for each in progress["stateOperators"])


def batch_seconds(progress: Progress) -> float:
    """Return how long the batch took, all in all."""
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
    """Return Spark's own watermark and the newest event time of the batch, since the epoch."""
    found = progress["eventTime"] or {}
    # Spark says 1970 as long as it has seen no event time.
    return _instant(found.get("watermark")) or None, _instant(found.get("max"))


def _instant(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()
