"""Live queries over a table, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from penstock.core.partitioner import partition_of
from penstock.errors import Place

__all__ = ["LEASE", "MOST_ROWS", "LiveQueries", "cell_keys"]

LEASE = timedelta(minutes=2)
"""A query that nobody has renewed for so long is closed."""
MOST_ROWS = 100
"""How many rows a grid may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveQueries:
    """Queries over a table that clients follow; ``app.live_queries`` declares them."""

    name: str
    table: Any
    document: str | None
    asked: Any
    """The stream on which whoever follows a query says so, again and again."""
    news: Any
    """The stream of what is new in the results."""
    rows: int
    lease: timedelta = LEASE
    rule: str = ""
    """For which rows a caller of a gateway may see them, as a text over the row and its claims."""
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> int:
        """How many columns the grid has: the partitions of the table."""
        found: int = self.table.topic.partitions
        return found


def cell_keys(columns: int) -> tuple[str, ...]:
    """Return for each partition a key that belongs to it."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < columns:
        key = f"cell-{number}"
        found.setdefault(partition_of(key.encode(), columns), key)
        number += 1
    return tuple(found[column] for column in range(columns))
