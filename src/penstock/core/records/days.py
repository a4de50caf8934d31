"""Days of instants: how lake tables are partitioned by date, and which days have expired."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

__all__ = ["Day", "day", "first_kept_day"]


@dataclass(frozen=True, slots=True)
class Day:
    """The day, in UTC, of an instant of the record; a column of its own in the lake table."""

    field: str

    @property
    def column(self) -> str:
        """The name of the column: ``at_day`` for ``day("at")``."""
        return f"{self.field}_day"

    def __str__(self) -> str:
        """Return it as it is declared."""
        return f"day({self.field})"


def day(field: str) -> Day:
    """Partition a lake table by the day (UTC) of an instant: ``partition_by=day("at")``."""
    return Day(field)


def first_kept_day(now: datetime, retention: timedelta) -> date:
    """Return the day before which every record has expired: whole days are deleted, no less."""
    return (now - retention).astimezone(UTC).date()
