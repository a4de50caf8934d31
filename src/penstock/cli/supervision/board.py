"""The state of every part while a command runs them: what its status shows. No I/O here."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.cli.supervision.plan import Unit
from penstock.core.status.report import Counts, PartReport
from penstock.core.status.status import PartStatus, Shown
from penstock.core.units import span_text
from penstock.services.step.tally import total

__all__ = ["SILENT_SECONDS", "Board"]

SILENT_SECONDS = 60.0
"""A running part that has not reported for this long is not well: its process may be stuck."""


@dataclass(slots=True)
class _Part:
    kind: str
    state: Shown = "starting"
    since_at: float = 0.0
    reason: str = ""
    report: PartReport | None = None
    heard_at: float = 0.0
    earlier: Counts = field(default_factory=Counts)
    restarts: int = 0
    last_end: str = ""
    """Why its process last died."""

    @property
    def again(self) -> str:
        """Return why it starts again; empty: it is the first time."""
        return self.last_end and f"restarting after {self.last_end}"

    def enter(self, state: Shown, reason: str, now: float) -> bool:
        """Change the state; return whether it was another one before."""
        news = (state, reason) != (self.state, self.reason)
        if state != self.state:
            self.since_at = now
        self.state, self.reason = state, reason
        return news


class Board:
    """What is known of each part in each process, from its reports and from what happens to it.

    It may be read and written from any thread.
    """

    def __init__(self, units: Sequence[Unit], *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._parts = {
            (unit.name, part): _Part(unit.kind, since_at=clock())
            for unit in units
            for part in unit.parts
        }

    def take(self, report: PartReport, *, process: str) -> PartReport | None:
        """Take note of a report; return it where the part's state or reason is another now.

        Then it has the counts of all processes that the part has had, as its row does.
        """
        with self._lock:
            part = self._parts.get((process, report.part))
            if part is None:
                return None
            part.report, part.heard_at, part.kind = report, self._clock(), report.kind
            reason = report.reason or (part.again if report.state == "starting" else "")
            if not part.enter(report.state, reason, self._clock()):
                return None
            return msgspec.structs.replace(report, counts=total(part.earlier, report.counts))

    def started(self, process: str) -> None:
        """Take note that a process was started."""
        with self._lock:
            for part in self._of(process):
                part.enter("starting", part.again, self._clock())

    def died(self, process: str, reason: str) -> None:
        """Take note that a process died and will be started again."""
        with self._lock:
            for part in self._of(process):
                _keep_counts(part)
                part.restarts, part.last_end = part.restarts + 1, reason
                part.enter("restarting", reason, self._clock())

    def ended(self, process: str) -> None:
        """Take note that a process had nothing more to do."""
        with self._lock:
            for part in self._of(process):
                _keep_counts(part)
                part.enter("ended", part.reason, self._clock())

    def rows(self) -> tuple[PartStatus, ...]:
        """Return all parts as they are now."""
        with self._lock:
            now = self._clock()
            return tuple(
                _status(part, process=process, name=name, now=now)
                for (process, name), part in self._parts.items()
            )

    def _of(self, process: str) -> list[_Part]:
        return [part for (name, _), part in self._parts.items() if name == process]


def _status(part: _Part, *, process: str, name: str, now: float) -> PartStatus:
    report, state, reason = part.report, part.state, part.reason
    silent = now - part.heard_at if report else None
    if state == "running" and silent is not None and silent >= SILENT_SECONDS:
        state, reason = "degraded", f"it has not reported for {span_text(silent)}"
    last_end = {"last end": part.last_end} if part.last_end else {}
    return PartStatus(
        process=process,
        part=name,
        kind=part.kind,
        state=state,
        since_seconds=max(0.0, now - part.since_at),
        reason=reason,
        silent_seconds=silent,
        restarts=part.restarts,
        counts=total(part.earlier, report.counts if report else Counts()),
        rate_in=report.rate_in if report else 0.0,
        rate_out=report.rate_out if report else 0.0,
        lag=report.lag if report else None,
        detail=(report.detail if report else {}) | last_end,
        metrics=report.metrics if report else {},
    )


def _keep_counts(part: _Part) -> None:
    """Keep the final counts of a process that is gone; records in flight will come again."""
    if part.report is not None:
        gone = part.report.counts
        final = Counts(
            received=gone.received - gone.in_flight,
            passed=gone.passed,
            filtered=gone.filtered,
            dead_lettered=gone.dead_lettered,
            written=gone.written,
        )
        part.earlier, part.report = total(part.earlier, final), None
