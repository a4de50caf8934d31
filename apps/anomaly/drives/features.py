"""What a drive's daily values say about it, given those of the days before."""

from __future__ import annotations

from datetime import datetime
from math import log1p

from penstock import record

__all__ = ["FEATURES", "DriveDay", "DriveHistory"]

FEATURES = (
    "reallocated",
    "pending",
    "reallocated_week",
    "pending_week",
    "any_sectors",
    "both_sectors",
    "power_on",
    "stalled",
    "read_errors",
    "capacity",
    "young",
    "model_risk",
)
"""The features of a drive, in the order of the model's weights."""

_WEEK = 7
"""So many values are looked back on."""
_RECENT_DAYS = 3
"""Days between two values for which a stall can be told."""
_STALL_FADES = 0.9
_YOUNG_HOURS = 1_000
_TERABYTE = 1e12
_MOST_SECTORS = 70_000


@record(key="serial", time="at")
class DriveDay:
    """One day of one drive: raw SMART values 1, 5, 9 and 197."""

    serial: str
    at: datetime
    model: str
    capacity_bytes: int
    read_errors: int
    reallocated_sectors: int
    power_on_hours: int
    pending_sectors: int


@record()
class DriveHistory:
    """What has to be remembered of one drive; bounded, whatever comes."""

    reallocated: int = 0
    """The most sectors that were ever reallocated, and pending."""
    pending: int = 0
    stalled: float = 0.0
    """1 on a day on which the drive's clock of hours stood still; it fades from day to day."""
    last_at: datetime | None = None
    last_hours: int = 0
    reallocated_days: list[int] = []  # noqa: RUF012 - each record has its own
    """The sectors of the last days, the oldest first."""
    pending_days: list[int] = []  # noqa: RUF012

    def after(self, day: DriveDay) -> DriveHistory:
        """Return the history with one more day."""
        pending = min(day.pending_sectors, _MOST_SECTORS)
        return DriveHistory(
            reallocated=max(self.reallocated, day.reallocated_sectors),
            pending=max(self.pending, pending),
            stalled=max(self.stalled * _STALL_FADES, float(self._stands_still(day))),
            last_at=day.at,
            last_hours=day.power_on_hours,
            reallocated_days=[*self.reallocated_days, day.reallocated_sectors][-_WEEK:],
            pending_days=[*self.pending_days, pending][-_WEEK:],
        )

    def features(self, day: DriveDay, *, before: DriveHistory, model_risk: float) -> list[float]:
        """Return the features of the day that made this history of the one before."""
        week_ago = (before.reallocated_days or self.reallocated_days)[0]
        pending_ago = (before.pending_days or self.pending_days)[0]
        return [
            log1p(self.reallocated),
            log1p(self.pending),
            _signed_log(self.reallocated_days[-1] - week_ago),
            _signed_log(self.pending_days[-1] - pending_ago),
            float(self.reallocated > 0 or self.pending > 0),
            float(self.reallocated > 0 and self.pending > 0),
            log1p(day.power_on_hours),
            self.stalled,
            log1p(day.read_errors),
            day.capacity_bytes / _TERABYTE,
            float(day.power_on_hours < _YOUNG_HOURS),
            model_risk,
        ]

    def _stands_still(self, day: DriveDay) -> bool:
        """Return whether the drive has hardly run since its last values, not long ago."""
        if self.last_at is None or not 0 < (day.at - self.last_at).days <= _RECENT_DAYS:
            return False
        if not day.power_on_hours:
            return False  # it does not say
        return day.power_on_hours - self.last_hours <= 1


def _signed_log(change: int) -> float:
    return log1p(change) if change >= 0 else -log1p(-change)
