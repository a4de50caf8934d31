"""What a drive's daily values say about it, given those of the days before."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import date
from math import log1p

__all__ = ["FEATURES", "DailyValues", "DriveHistory"]

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


@dataclass(frozen=True, slots=True)
class DailyValues:
    """One day of one drive: raw SMART values 1, 5, 9 and 197."""

    day: date
    serial: str
    model: str
    capacity_bytes: int
    read_errors: int
    reallocated_sectors: int
    power_on_hours: int
    pending_sectors: int


@dataclass
class DriveHistory:
    """What has to be remembered of one drive; bounded, whatever comes."""

    reallocated: int = 0
    """The most sectors that were ever reallocated, and pending."""
    pending: int = 0
    stalled: float = 0.0
    """1 on a day on which the drive's clock of hours stood still; it fades from day to day."""
    last_day: date | None = None
    last_hours: int = 0
    sectors: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_WEEK))
    """The sectors of the last days: reallocated, pending."""

    def see(self, values: DailyValues, model_risk: float) -> tuple[float, ...]:
        """Return the features of a day, in the order of `FEATURES`, and remember the day."""
        reallocated = values.reallocated_sectors
        pending = min(values.pending_sectors, _MOST_SECTORS)
        self.reallocated = max(self.reallocated, reallocated)
        self.pending = max(self.pending, pending)
        self.stalled = max(self.stalled * _STALL_FADES, float(self._stands_still(values)))
        before = self.sectors[0] if self.sectors else (reallocated, pending)
        self.sectors.append((reallocated, pending))
        self.last_day, self.last_hours = values.day, values.power_on_hours
        return (
            log1p(self.reallocated),
            log1p(self.pending),
            _signed_log(reallocated - before[0]),
            _signed_log(pending - before[1]),
            float(self.reallocated > 0 or self.pending > 0),
            float(self.reallocated > 0 and self.pending > 0),
            log1p(values.power_on_hours),
            self.stalled,
            log1p(values.read_errors),
            values.capacity_bytes / _TERABYTE,
            float(values.power_on_hours < _YOUNG_HOURS),
            model_risk,
        )

    def _stands_still(self, values: DailyValues) -> bool:
        """Return whether the drive has hardly run since its last values, not long ago."""
        if self.last_day is None or (values.day - self.last_day).days > _RECENT_DAYS:
            return False
        return values.power_on_hours - self.last_hours <= 1


def _signed_log(change: int) -> float:
    return log1p(change) if change >= 0 else -log1p(-change)
