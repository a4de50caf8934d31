"""Replays daily values of drives, day by day, and says for which drive it would have alarmed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date

from apps.anomaly.drives.features import DriveDay, DriveHistory
from apps.anomaly.drives.model import DriveModel

__all__ = ["Drive", "Outcome", "outcome", "replay"]

ALARM_ACTIONS = ("notify", "move-data")
CERTAIN_ACTIONS = (*ALARM_ACTIONS, "turn-off")


@dataclass
class Drive:
    """One drive: what it is known for, and what was done."""

    serial: str
    history: DriveHistory = field(default_factory=DriveHistory)
    highest: float = 0.0
    """Its highest score before the day on which it failed."""
    alarmed_on: date | None = None
    actions: tuple[str, ...] = ()
    failed_on: date | None = None

    def see(self, day: DriveDay, model: DriveModel) -> float:
        """Score a day; alarm once, and do more once it is certain."""
        before, self.history = self.history, self.history.after(day)
        risk = model.risk(day.model)
        score = model.score(self.history.features(day, before=before, model_risk=risk))
        if score > model.threshold and self.alarmed_on is None:
            self.alarmed_on, self.actions = day.at.date(), ALARM_ACTIONS
        if score > model.certain:
            self.actions = CERTAIN_ACTIONS
        return score


def replay(days: Iterable[tuple[DriveDay, bool]], model: DriveModel) -> dict[str, Drive]:
    """Score every day of every drive, in order; whether it failed is only noted."""
    drives: dict[str, Drive] = {}
    for day, failed in days:
        drive = drives.setdefault(day.serial, Drive(day.serial))
        score = drive.see(day, model)
        if failed:
            drive.failed_on = day.at.date()
        else:
            drive.highest = max(drive.highest, score)
    return drives


@dataclass(frozen=True, slots=True)
class Outcome:
    """How good the alarms were, where the file says which drives failed."""

    failing: int
    found: int
    """Failing drives with an alarm on an earlier day than that of the failure."""
    healthy: int
    flagged: int
    lead_days: tuple[int, ...]
    curve: tuple[tuple[float, float], ...]
    """Shares of healthy drives flagged, and of failing ones found, by threshold."""

    def lines(self) -> Iterator[str]:
        """Return it in words."""
        found, flagged = _percent(self.found, self.failing), _percent(self.flagged, self.healthy)
        yield f"{self.found} of {self.failing} failing drives found before their failure ({found})"
        yield f"{self.flagged} of {self.healthy} healthy drives flagged ({flagged})"
        if self.lead_days:
            median = statistics.median(self.lead_days)
            short = sum(days <= _SHORT for days in self.lead_days)
            yield f"lead time: {median:g} days in the median, {short} times a week or less"
        for wrong, right in self.curve:
            yield f"at {wrong:.0%} of the healthy drives flagged: {right:.0%} found"


_SHORT = 7
_SHARES = (0.01, 0.02, 0.03, 0.04, 0.05, 0.1)


def outcome(drives: Iterable[Drive]) -> Outcome:
    """Return how good the alarms were."""
    drives = list(drives)
    failing = [drive for drive in drives if drive.failed_on]
    healthy = [drive for drive in drives if not drive.failed_on]
    leads = [
        (drive.failed_on - drive.alarmed_on).days
        for drive in failing
        if drive.alarmed_on and drive.failed_on
    ]
    leads = [days for days in leads if days > 0]
    return Outcome(
        failing=len(failing),
        found=len(leads),
        healthy=len(healthy),
        flagged=sum(drive.alarmed_on is not None for drive in healthy),
        lead_days=tuple(sorted(leads)),
        curve=tuple(_curve(failing, healthy)),
    )


def _curve(failing: list[Drive], healthy: list[Drive]) -> Iterator[tuple[float, float]]:
    if not failing or not healthy:
        return
    ordered = sorted((drive.highest for drive in healthy), reverse=True)
    for share in _SHARES:
        threshold = ordered[min(int(share * len(ordered)), len(ordered) - 1)]
        yield share, sum(drive.highest > threshold for drive in failing) / len(failing)


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"
