"""Where reading a topic starts and ends, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

__all__ = ["EARLIEST", "LATEST", "Earliest", "End", "Instant", "Last", "Latest", "Offset", "Start"]


@dataclass(frozen=True, slots=True)
class Earliest:
    """The oldest record that the log still has."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of the log at the moment of asking."""


@dataclass(frozen=True, slots=True)
class Offset:
    """An offset: the same in every partition, or one for each partition that is read."""

    at: int | Mapping[int, int] = field()

    def of(self, partition: int) -> int | None:
        """Return the offset in a partition, None where none is given."""
        return self.at if isinstance(self.at, int) else self.at.get(partition)


@dataclass(frozen=True, slots=True)
class Instant:
    """The first record whose timestamp is not before this instant (which knows its time zone)."""

    at: datetime

    def __post_init__(self) -> None:
        if self.at.tzinfo is None:
            raise ValueError(f"{self.at.isoformat()} has no time zone")

    @property
    def milliseconds(self) -> int:
        """The instant as the log counts: milliseconds since the epoch, where a log begins."""
        return max(0, round(self.at.timestamp() * 1000))


@dataclass(frozen=True, slots=True)
class Last:
    """So many records, in each partition, before the end (transaction markers do not count)."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"the last {self.count} records cannot be read")


EARLIEST = Earliest()
LATEST = Latest()

Start: TypeAlias = Earliest | Latest | Offset | Instant | Last
End: TypeAlias = Latest | Offset | Instant
"""Reading stops before it: the offset itself, or the first record at the instant, is not read."""
