"""Rows that were found, for as long as they count as fresh; the number of them is bounded."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

__all__ = ["Ages", "Kept", "RowCache"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """How long what was found counts."""

    fresh: timedelta
    """A row, before it is asked for again."""
    absent: timedelta
    """That there is no row."""
    stale: timedelta
    """Either, while the store does not answer."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was found under a key: a row, or None."""

    row: Any
    at: float


class RowCache:
    """The rows that were used last; a key that was not asked for longest makes room.

    >>> second = timedelta(seconds=1)
    >>> cache = RowCache(most=1, ages=Ages(fresh=second, absent=second, stale=second))
    >>> cache.put("a", "row", at=0.0)
    >>> cache.fresh("a", at=0.5).row, cache.fresh("a", at=1.5)
    ('row', None)
    """

    def __init__(self, *, most: int, ages: Ages) -> None:
        self._most = most
        self._fresh = ages.fresh.total_seconds()
        self._absent = ages.absent.total_seconds()
        self._stale = ages.stale.total_seconds()
        self._rows: OrderedDict[Hashable, Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def fresh(self, key: Hashable, *, at: float) -> Kept | None:
        """Return what was found under a key, where that is young enough."""
        kept = self._rows.get(key)
        if kept is None:
            return None
        self._rows.move_to_end(key)
        age = self._absent if kept.row is None else self._fresh
        return kept if at - kept.at < age else None

    def stale(self, key: Hashable, *, at: float) -> Kept | None:
        """Return what was found under a key, as it counts while the store does not answer."""
        kept = self._rows.get(key)
        return kept if kept is not None and at - kept.at < self._stale else None

    def put(self, key: Hashable, row: Any, *, at: float) -> None:
        """Keep what was found under a key."""
        self._rows[key] = Kept(row, at)
        self._rows.move_to_end(key)
        while len(self._rows) > self._most:
            self._rows.popitem(last=False)
