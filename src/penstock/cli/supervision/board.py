"""The state of every part while ``penstock dev`` runs: what the status shows. No I/O here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from penstock.core.report import Counts, PartReport, PartState
from penstock.services.tally import total

__all__ = ["Board", "Row"]

Shown = PartState | Literal["restarting", "ended"]

_HIDDEN_DETAIL = frozenset({"delivery", "partitions", "keys"})
_HEALTHY = frozenset({"running", "ended", "stopped"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One part at one moment; counts go on over restarts."""

    part: str
    kind: str
    state: Shown
    since: float
    """Seconds it has been in this state."""
    reason: str
    counts: Counts
    rate_in: float
    rate_out: float
    lag: int | None
    restarts: int

    @property
    def healthy(self) -> bool:
        """Whether it runs, or has ended as it should."""
        return self.state in _HEALTHY


@dataclass(slots=True)
class _Part:
    kind: str
    state: Shown = "starting"
    since_at: float = 0.0
    reason: str = ""
    report: PartReport | None = None
    earlier: Counts = field(default_factory=Counts)
    restarts: int = 0

    def enter(self, state: Shown, reason: str, now: float) -> bool:
        """Change the state; return whether that is news."""
        news = (state, reason) != (self.state, self.reason)
        if state != self.state:
            self.since_at = now
        self.state, self.reason = state, reason
        return news


class Board:
    """What is known of each part, from its reports and from what happens to its process."""

    def __init__(self, parts: Sequence[tuple[str, str]], *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._parts = {name: _Part(kind, since_at=clock()) for name, kind in parts}

    def take(self, report: PartReport) -> bool:
        """Take note of a report; return whether the part's state or reason is another now."""
        part = self._parts.get(report.part)
        if part is None:
            return False
        part.report = report
        return part.enter(report.state, report.reason, self._clock())

    def started(self, names: Sequence[str]) -> None:
        """Take note that the process of these parts was started."""
        for name in names:
            self._parts[name].enter("starting", "", self._clock())

    def died(self, names: Sequence[str], reason: str) -> None:
        """Take note that the process of these parts died and will be started again."""
        for name in names:
            part = self._parts[name]
            self._keep_counts(part)
            part.restarts += 1
            part.enter("restarting", reason, self._clock())

    def ended(self, names: Sequence[str]) -> None:
        """Take note that these parts had nothing more to do."""
        for name in names:
            part = self._parts[name]
            self._keep_counts(part)
            part.enter("ended", part.reason, self._clock())

    def rows(self) -> list[Row]:
        """Return all parts as they are now."""
        now = self._clock()
        return [
            Row(
                part=name,
                kind=part.kind,
                state=part.state,
                since=max(0.0, now - part.since_at),
                reason=part.reason or _detail(part.report),
                counts=total(part.earlier, part.report.counts if part.report else Counts()),
                rate_in=part.report.rate_in if part.report else 0.0,
                rate_out=part.report.rate_out if part.report else 0.0,
                lag=part.report.lag if part.report else None,
                restarts=part.restarts,
            )
            for name, part in self._parts.items()
        ]

    @staticmethod
    def _keep_counts(part: _Part) -> None:
        """Keep what is final of a process that is gone; what was in flight will come again."""
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


def _detail(report: PartReport | None) -> str:
    detail = report.detail if report else {}
    return ", ".join(
        f"{name} {text}" for name, text in detail.items() if name not in _HIDDEN_DETAIL
    )
