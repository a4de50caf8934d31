"""How event time moves in a stream: how much disorder it forgives, and what silence means."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

__all__ = ["IDLE_AFTER", "EventTime", "Follows"]

Follows = Literal["slowest", "newest"]
IDLE_AFTER = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """What the watermark of a stream follows, and how far behind it stays."""

    disorder: timedelta | None = None
    """How far behind the newest event time a record may come and still be on time."""
    idle_after: timedelta | None = IDLE_AFTER
    """How long a partition is silent before it no longer holds the watermark of the others back."""
    closes_after: timedelta | None = None
    """How long all partitions are silent before the watermark moves on with the clock."""
    ahead: timedelta | None = None
    """How far ahead of the clock an event time is believed; None: any."""
    follows: Follows = "slowest"
    """Which partition the watermark follows."""
