"""Sum up what a query has done since it started, from its progress, as numbers and words."""

from collections import Counter
from collections.abc import Iterator

from penstock.core.panes.panecounts import AHEAD, LATE, PANE_KINDS
from penstock.core.status.eventtimes import EventTimes
from penstock.core.status.exposition import series
from penstock.core.status.histogram import Histogram
from penstock.core.status.report import Counts
from penstock.core.units import bytes_text
from penstock.pipelines.checkpoint.progress import (
    Progress,
    batch_seconds,
    dropped_rows,
    event_times,
    observed,
    step_seconds,
    was_batch,
)
from penstock.pipelines.gate.reading import DELETIONS, RECEIVED, REJECTED
from penstock.pipelines.operators.hosting import DROPPED, REFUSED
from penstock.pipelines.rollups.native import SHIFT
from penstock.pipelines.rollups.processor import NEWEST, WATERMARK
from penstock.pipelines.sink.destination import WRITTEN

__all__ = ["Measures"]

_MILLISECONDS = 1000.0
_MICROSECONDS = 1e6
_STEPS_SHOWN = 3
_STATE_TIMES = {
    "update": "allUpdatesTimeMs",
    "remove": "allRemovalsTimeMs",
    "commit": "commitTimeMs",
}
_SST_BYTES = "rocksdbSstFileSize"


class Measures:
    """The measures of one query. ``native`` says that Spark's own windows make its panes.

    It counts what finished batches did. For real-time mode it counts only what Spark reports.
    """

    def __init__(self, *, native: bool = False) -> None:
        self._native = native
        self._received = self._rejected = self._deletions = self._written = self._buried = 0
        self._filtered = self._refused = 0
        self._panes: Counter[str] = Counter()
        self._ledger: Counter[str] = Counter()
        self._dropped = 0
        self._times = EventTimes()
        self._state: dict[str, float] = {}
        self._state_seconds: Counter[str] = Counter()
        self._batches = Histogram()
        self._steps: Counter[str] = Counter()
        self._last: Progress | None = None

    def add(self, progress: Progress) -> None:
        """Count progress."""
        gates = observed(progress, RECEIVED)
        # A plan that uses an input twice reads it twice, and its gate counts it once.
        self._received += sum(row[RECEIVED] for row in gates) if gates else progress["numInputRows"]
        self._rejected += sum(row[REJECTED] for row in gates)
        self._deletions += sum(row[DELETIONS] for row in gates)
        outputs = observed(progress, WRITTEN)
        written = sum(row[WRITTEN] for row in outputs)
        self._written += written if outputs else max(0, progress["sink"]["numOutputRows"] or 0)
        if self._native:
            self._panes["on_time"] += written
        for row in observed(progress, WATERMARK):
            self._panes.update({kind: row[kind] or 0 for kind in PANE_KINDS if kind in row})
            self._ledger.update({each: row[each] or 0 for each in (LATE, AHEAD)})
            self._times = self._times.after(EventTimes.of_micros(row[WATERMARK], row[NEWEST]))
        self._add_results(progress)
        self._times = self._times.after(EventTimes(*self._event_times(progress)))
        if was_batch(progress):
            self._add_batch(progress)
        self._add_state(progress)

    def _add_results(self, progress: Progress) -> None:
        """Count what an operator dropped on purpose, and what its expressions failed on."""
        for row in observed(progress, REFUSED):
            self._filtered += row[DROPPED] or 0
            self._refused += row[REFUSED] or 0

    def _event_times(self, progress: Progress) -> Iterator[float | None]:
        for at in event_times(progress):
            yield at - SHIFT / _MICROSECONDS if self._native and at is not None else at

    def add_written(self, count: int) -> None:
        """Add rows of a batch whose output the sink has computed, and Spark has not counted."""
        self._written += count

    def swept(self, letters: int, *, late: int, all_rejected: bool) -> None:
        """Take note of how many dead letters and late records have been written by sweepers.

        ``all_rejected`` says that nothing else counts the rows that were refused.
        """
        self._buried = letters
        if all_rejected:
            self._rejected = min(letters, self._received)
        if self._native:
            self._ledger[LATE] = late

    def add_unusable(self, count: int) -> None:
        """Add dead letters of what is looked up; its other rows are not received."""
        self._received += count
        self._rejected += count

    def _add_batch(self, progress: Progress) -> None:
        self._last = progress
        self._batches.see(batch_seconds(progress))
        self._steps.update(step_seconds(progress))
        if not self._native:
            self._dropped += dropped_rows(progress)
        for each in progress["stateOperators"]:
            for phase, name in _STATE_TIMES.items():
                self._state_seconds[phase] += each[name] / _MILLISECONDS

    def _add_state(self, progress: Progress) -> None:
        if operators := progress["stateOperators"]:
            custom = [each["customMetrics"] or {} for each in operators]
            self._state = {
                "state_rows": sum(each["numRowsTotal"] for each in operators),
                "state_memory_bytes": sum(each["memoryUsedBytes"] for each in operators),
                "state_disk_bytes": sum(each.get(_SST_BYTES, 0) for each in custom),
                "state_partitions": sum(each["numShufflePartitions"] for each in operators),
            }

    def counts(self) -> Counts:
        """Return the conservation law of the rows that came in."""
        # A sweep may have found letters of an earlier run, too.
        buried = min(self._buried, self._rejected)
        return Counts(
            received=self._received,
            passed=self._received
            - self._rejected
            - self._deletions
            - self._filtered
            - self._refused,
            filtered=self._deletions + self._filtered,
            dead_lettered=buried + self._refused,
            in_flight=self._rejected - buried,
            written=self._written,
        )

    def series(self, now: float) -> dict[str, float]:
        """Return everything as series of Prometheus; ``now`` in seconds since the epoch."""
        found = dict(self._batches.series("batch_seconds"))
        if self._last is not None:
            found["batch_number"] = self._last["batchId"]
        for step, spent in self._steps.items():
            found[series("batch_step_seconds_total", step=step)] = spent
        found |= self._state
        for phase, spent in self._state_seconds.items():
            found[series("state_task_seconds_total", phase=phase)] = spent
        for kind in PANE_KINDS if self._panes else ():
            found[series("panes_total", kind=kind)] = self._panes[kind]
        found |= {f"{name}_total": count for name, count in self._ledger.items()}
        found["dropped_rows_total"] = self._dropped
        return found | self._times.series(now)

    def detail(self, now: float) -> dict[str, str]:
        """Return the same in words, for people."""
        if self._last is None:
            return {}
        last = self._last
        steps = [
            f"{step.replace('_', ' ')} {spent:.3f}s"
            for step, spent in list(step_seconds(last).items())[:_STEPS_SHOWN]
        ]
        detail = {"batch": f"{last['batchId']} in {batch_seconds(last):.3f}s"}
        detail["steps"] = ", ".join(steps)
        if watermark := self._times.words(now):
            detail["watermark"] = watermark
        if self._state:
            detail["state"] = _state_text(self._state)
        if self._panes:
            kinds = (f"{self._panes[kind]:,} {kind.replace('_', ' ')}" for kind in PANE_KINDS)
            detail["panes"] = ", ".join(kinds)
        if late := {name: count for name, count in self._ledger.items() if count}:
            words = (f"{count:,} {name.partition('_')[0]}" for name, count in late.items())
            detail["late ledger"] = ", ".join(words)
        if self._dropped:
            detail["dropped"] = f"{self._dropped:,} rows behind the watermark"
        return detail


def _state_text(state: dict[str, float]) -> str:
    words = [
        f"{state['state_rows']:,} rows",
        f"{bytes_text(state['state_memory_bytes'])} in memory",
    ]
    if disk := state["state_disk_bytes"]:
        words.append(f"{bytes_text(disk)} on disk")
    words.append(f"{state['state_partitions']} partitions")
    return ", ".join(words)
