"""The days of instants: partitions of lake tables, and which of them have expired."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

__all__ = ["Day", "day", "first_kept_day"]


@dataclass(frozen=True, slots=True)
class Day:
    """The day, in UTC, of an instant of the record: a separate column of the lake table."""

    field: str

    @property
    def column(self) -> str:
        """The name of the column: ``at_day`` for ``day("at")``."""
        return f"{self.field}_day"

    def __str__(self) -> str:
        """Return it as it was declared."""
        return f"day({self.field})"


def day(field: str) -> Day:
    """Partition a lake table by the day, in UTC, of an instant of its records.

    The table gets a column with the date: ``at_day`` for ``day("at")``. Queries of few days read
    few files, and ``retention`` deletes whole days.

    Examples:
        >>> app.lake("by_day", Reading, partition_by=day("at")).partition_columns
        ('at_day',)
    """
    return Day(field)


def first_kept_day(now: datetime, retention: timedelta) -> date:
    """Return the first day that is kept. Only whole days are deleted."""
    return (now - retention).astimezone(UTC).date()
