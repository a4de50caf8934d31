"""Changelog records on their way to a shelf: what is committed, and what was restored."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf
    from penstock.services.state.timing.expiries import ShelvedExpiries
    from penstock.services.state.timing.shelved import ShelvedTimers

__all__ = ["Saving"]

Pair = tuple[bytes, bytes | None]
_RESTORE_BATCH = 5000
"""So many records of the changelog are put on a shelf at once."""


class Saving:
    """Holds what a shelf does not have yet, and how far its logs are when it has it."""

    def __init__(
        self,
        shelf: "Shelf",
        *,
        expiries: "Sequence[ShelvedExpiries]" = (),
        timers: "ShelvedTimers | None" = None,
    ) -> None:
        self.shelf = shelf
        self._expiries = expiries
        self._timers = timers
        self._records: list[Pair] = []
        self._positions: dict[str, int] = {}

    def commit(self, changes: Iterable[Pair]) -> Sequence[Pair]:
        """Hold what a commit makes durable on the changelog, and return it; save it afterwards."""
        if self.shelf.trouble is not None:
            raise self.shelf.trouble
        self._records = list(changes)
        return self._records

    def also(self, changes: Iterable[Pair]) -> None:
        """Hold what the same commit changes and the changelog does not need."""
        self._records = [*self._records, *changes]

    def add(self, key: bytes, value: bytes | None) -> None:
        """Save a record of the changelog soon."""
        self._records.append((key, value))
        if len(self._records) >= _RESTORE_BATCH:
            self.save()

    def reach(self, positions: Mapping[str, int]) -> None:
        """Hear an offset of each log below which the shelf misses nothing, once saved."""
        self._positions |= positions

    def save(self) -> None:
        """Write to the shelf; TransientError where that fails: it must not be used any more."""
        index = [each.take_changes() for each in self._expiries]
        pairs: Iterable[Pair] = self._records
        if self._timers is not None:
            index.append(self._timers.take_changes())
            pairs = chain(pairs, self._timers.take_facts())
        self.shelf.write(pairs, positions=self._positions, index=index)
        self._records, self._positions = [], {}
