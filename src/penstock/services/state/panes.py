"""The records of a bucket as the state of one task: in memory or on a shelf, and on the changelog.

On a shelf, what was written since the last commit is in memory until that is done, and a bounded
number of keys with their windows stays there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from penstock.core.panes.bucket import Bucket
from penstock.services.state.notes import Notes
from penstock.services.state.saving import Saving

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["PaneState"]

_PREFIX = b"panes\x00"
_KEPT_KEYS = 20_000
"""So many keys stay unpacked in memory, from one commit to the next, where state is on a shelf."""


class PaneState:
    """The records of a bucket, and which of them the changelog does not have yet."""

    def __init__(self, shelf: "Shelf | None" = None) -> None:
        self.bucket: Bucket | None = None
        self.notes = Notes()
        self._saving = None if shelf is None else Saving(shelf)
        self._records: dict[bytes, bytes | None] = {}
        """All of them, or those that the shelf does not have; None: deleted since."""
        self._changed: set[bytes] = set()

    def __len__(self) -> int:
        """Return how many records there are; of a shelf, about."""
        return len(self._records) if self._saving is None else len(self._saving.shelf)

    def get(self, key: bytes) -> bytes | None:
        """Return a record, or None."""
        if self._saving is None or key in self._records:
            return self._records.get(key)
        return self._saving.shelf.get(_PREFIX + key)

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""
        self._records[key] = value
        self._changed.add(key)

    def delete(self, key: bytes) -> None:
        """Delete a record that may be there."""
        if self.get(key) is None:
            return
        if self._saving is None:
            del self._records[key]
        else:
            self._records[key] = None
        self._changed.add(key)

    def changes(self) -> Iterable[tuple[bytes, bytes | None]]:
        """Return a changelog record for everything that changed since the last commit."""
        if self.bucket is not None:
            self.bucket.flush()
        return self._changes() if self._saving is None else self._saving.commit(self._changes())

    def settle(self) -> None:
        """Forget what changed: its changelog records are committed."""
        self._changed.clear()
        self.notes.settle()
        self._save()

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Take in one record of the changelog."""
        noted = self.notes.apply(key, value)
        if not noted and not key.startswith(_PREFIX):
            return
        if self._saving is not None:
            self._saving.add(key, value)
        elif noted:
            return
        elif value is None:
            self._records.pop(key[len(_PREFIX) :], None)
        else:
            self._records[key[len(_PREFIX) :]] = value

    @property
    def tables(self) -> tuple[str, ...]:
        """Return nothing: all of a bucket is on the changelog."""
        return ()

    def taking(self, table: str) -> Callable[[bytes, bytes | None], None]:
        """Refuse: there are no tables."""
        raise LookupError(table)

    def resume(self) -> Mapping[str, int]:
        """Begin with what the shelf has; return where each log is to be read on."""
        if self._saving is None or not self._saving.shelf.positions:
            return {}
        for key, value in self._saving.shelf.scan(b"\x00"):
            self.notes.apply(key, value)
        return self._saving.shelf.positions

    def begin(self) -> None:
        """Hear that all of the changelog was taken in: the bucket says itself what it is."""

    def restored(self, positions: Mapping[str, int]) -> None:
        """Hear that everything before an offset of each log was taken in."""
        self.snapshot(positions)
        self._save()

    def snapshot(self, positions: Mapping[str, int]) -> None:
        """Hear where logs end before the next commit: what the shelf has by then."""
        if self._saving is not None:
            self._saving.reach(positions)

    def _changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        for key in self._changed:
            yield _PREFIX + key, self._records.get(key)
        yield from self.notes.changes()

    def _save(self) -> None:
        if self._saving is None:
            return
        self._saving.save()
        self._records = {key: self._records[key] for key in self._changed}
        if self.bucket is not None:
            self.bucket.trim(_KEPT_KEYS)
