"""The records of a bucket as the state of one task: in memory or on a shelf, and on the changelog.

On a shelf, what was written since the last commit is in memory until that is done, and a bounded
number of keys with their windows stays there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.core.panes.bucket import GROUP_PREFIX, Bucket, windows_of
from penstock.services.state.committed import ABSENT, Overlay, Readable, WindowValue
from penstock.services.state.notes import Notes
from penstock.services.state.saving import Saving

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["PaneState"]

_PREFIX = b"panes\x00"
_KEPT_KEYS = 20_000
"""So many keys stay unpacked in memory, from one commit to the next, where state is on a shelf."""


class PaneState(Overlay):
    """The records of a bucket, and which of them the changelog does not have yet.

    ``results`` gives the results of a window from what it holds.
    """

    prefix = _PREFIX

    def __init__(
        self, shelf: "Shelf | None" = None, *, results: Callable[[Any], Any] = lambda held: held
    ) -> None:
        super().__init__()
        self._results = results
        self.bucket: Bucket | None = None
        self.notes = Notes()
        self._saving = None if shelf is None else Saving(shelf)
        self._records: dict[bytes, bytes | None] = {}
        """All of them, or those that the shelf does not have; None: deleted since."""

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
        self.changed.setdefault(key, self._records.get(key, ABSENT))
        self._records[key] = value

    def delete(self, key: bytes) -> None:
        """Delete a record that may be there."""
        if self.get(key) is None:
            return
        self.changed.setdefault(key, self._records.get(key, ABSENT))
        if self._saving is None:
            del self._records[key]
        else:
            self._records[key] = None

    def changes(self) -> Iterable[tuple[bytes, bytes | None]]:
        """Return a changelog record for everything that changed since the last commit."""
        if self.bucket is not None:
            self.bucket.flush()
        return self._changes() if self._saving is None else self._saving.commit(self._changes())

    def settle(self) -> None:
        """Forget what changed: its changelog records are committed."""
        super().settle()
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
    def readable(self) -> Mapping[str, Readable]:
        """Return the one state there is, for a cut to read: the windows of each group."""
        return {"windows": self}

    def held(self) -> Mapping[bytes, Any]:
        """Return the records, where they are in memory."""
        return self._records

    def under(self, head: bytes) -> tuple[bytes, ...]:
        """Refuse: a group has one record."""
        raise LookupError(head)

    def load(self, place: bytes, value: bytes) -> bytes:  # noqa: ARG002 - as it is on the shelf
        """Return a record of the shelf."""
        return value

    def places(self, key: bytes) -> tuple[bytes, bool]:
        """Return where the record of a group is."""
        return GROUP_PREFIX + key, False

    def key_of(self, place: bytes) -> bytes | None:
        """Return the group of a record; None: it is the bucket's own."""
        return place[len(GROUP_PREFIX) :] if place.startswith(GROUP_PREFIX) else None

    def gather(self, found: Iterable[tuple[bytes, Any]], now_at: datetime) -> Any:  # noqa: ARG002
        """Return the windows of a group; ABSENT: it has none."""
        windows = [
            WindowValue(*window, self._results(state.held), state.closed)
            for _, record in found
            for window, state in windows_of(record).items()
        ]
        return sorted(windows, key=lambda each: (each.start, each.end)) or ABSENT

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
        for key in self.changed:
            yield _PREFIX + key, self._records.get(key)
        yield from self.notes.changes()

    def _save(self) -> None:
        if self._saving is None:
            return
        self._saving.save()
        self._records = {key: self._records[key] for key in self.changed}
        if self.bucket is not None:
            self.bucket.trim(_KEPT_KEYS)
