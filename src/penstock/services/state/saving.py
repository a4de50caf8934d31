"""Changelog records on their way to a shelf: what is committed, and what was restored."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from penstock.services.state.expiries import ShelvedExpiries

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["Saving"]

Pair = tuple[bytes, bytes | None]
_RESTORE_BATCH = 5000
"""So many records of the changelog are put on a shelf at once."""


class Saving:
    """Holds what a shelf does not have yet, and how far the changelog is when it has it."""

    def __init__(self, shelf: "Shelf", *, expiries: Sequence[ShelvedExpiries] = ()) -> None:
        self.shelf = shelf
        self._expiries = expiries
        self._records: list[Pair] = []
        self._position: int | None = None

    def commit(self, changes: Iterable[Pair]) -> Sequence[Pair]:
        """Hold what a commit makes durable on the changelog, and return it; save it afterwards."""
        if self.shelf.trouble is not None:
            raise self.shelf.trouble
        self._records = list(changes)
        return self._records

    def add(self, key: bytes, value: bytes | None) -> None:
        """Save a record of the changelog soon."""
        self._records.append((key, value))
        if len(self._records) >= _RESTORE_BATCH:
            self.save()

    def reach(self, position: int) -> None:
        """Hear an offset of the changelog below which the shelf misses nothing, once saved."""
        self._position = position

    def save(self) -> None:
        """Write to the shelf; TransientError where that fails: it must not be used any more."""
        index = [each.take_changes() for each in self._expiries]
        self.shelf.write(self._records, position=self._position, index=index)
        self._records, self._position = [], None
