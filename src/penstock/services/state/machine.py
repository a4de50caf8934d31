"""The store of a pure machine as the state of one task: in memory or on a shelf, and on a topic.

On a shelf, what was written since the last commit is in memory until that is done, and a bounded
number of the machine's keys stays there.

A record that is larger than a broker may take lies in parts: they are records of their own, and
what the machine's key has says how many there are. Only parts that changed are written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from penstock.services.state.committed import ABSENT, Overlay, Readable
from penstock.services.state.notes import Notes
from penstock.services.state.saving import Saving

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["KEPT_KEYS", "Flushes", "MachineState"]

KEPT_KEYS = 20_000
"""So many keys stay unpacked in memory, from one commit to the next, where state is on a shelf."""
PART_BYTES = 512 << 10
"""The largest record of the changelog: half of what any broker takes by default."""

_PARTED = b"\xc1"
"""What the record of a key begins with that lies in parts; no JSON or MessagePack begins so."""
_PARTS = b"\x00part\x00"
"""What the keys of parts begin with; no machine's key begins with a zero byte."""
_NUMBER = 4
"""So many bytes say which part it is, at the end of its key."""


class Flushes(Protocol):
    """A machine that holds some of its state itself."""

    def flush(self) -> None:
        """Write what changed to the store."""

    def trim(self, most: int) -> None:
        """Forget what is in the store already, where more than so many keys are in memory."""


class MachineState(Overlay):
    """The records of a machine's store, and which of them the changelog does not have yet."""

    prefix = b"operator\x00"
    parted = True
    """Whether large records lie in parts."""

    def __init__(self, shelf: "Shelf | None" = None) -> None:
        super().__init__()
        self.machine: Flushes | None = None
        self.notes = Notes()
        self._saving = None if shelf is None else Saving(shelf)
        self._records: dict[bytes, bytes | None] = {}
        """All of them, or those that the shelf does not have; None: deleted since."""
        self._parts: dict[bytes, int] = {}
        """How many parts there are, of each key that has any."""

    def __len__(self) -> int:
        """Return how many records there are; of a shelf, about."""
        return len(self._records) if self._saving is None else len(self._saving.shelf)

    def get(self, key: bytes) -> bytes | None:
        """Return a record, or None."""
        if key in self._parts:
            return b"".join(self._get(name) or b"" for name in self._names(key))
        return self._get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""
        if (len(value) > PART_BYTES and self.parted) or key in self._parts:
            self._put_parts(key, value)
        else:
            self._put(key, value)

    def delete(self, key: bytes) -> None:
        """Delete a record that may be there."""
        if key in self._parts:
            self._put_parts(key, b"")
        self._delete(key)

    def changes(self) -> Iterable[tuple[bytes, bytes | None]]:
        """Return a changelog record for everything that changed since the last commit."""
        if self.machine is not None:
            self.machine.flush()
        return self._changes() if self._saving is None else self._saving.commit(self._changes())

    def settle(self) -> None:
        """Forget what changed: its changelog records are committed."""
        super().settle()
        self.notes.settle()
        self._save()

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Take in one record of the changelog."""
        noted = self.notes.apply(key, value)
        if not noted and not key.startswith(self.prefix):
            return
        if self.parted:
            self._see_parts(key[len(self.prefix) :], value)
        if self._saving is not None:
            self._saving.add(key, value)
        elif noted:
            return
        elif value is None:
            self._records.pop(key[len(self.prefix) :], None)
        else:
            self._records[key[len(self.prefix) :]] = value

    @property
    def readable(self) -> Mapping[str, Readable]:
        """Return nothing: what an operator remembers is its own business."""
        return {}

    def held(self) -> Mapping[bytes, Any]:
        """Return the records, where they are in memory."""
        return self._records

    @property
    def tables(self) -> tuple[str, ...]:
        """Return nothing: all of it is on the changelog."""
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
        for key, _ in self._saving.shelf.scan(self.prefix + _PARTS):
            name = key[len(self.prefix + _PARTS) : -_NUMBER]
            self._parts[name] = self._parts.get(name, 0) + 1
        return self._saving.shelf.positions

    def begin(self) -> None:
        """Hear that all of the changelog was taken in: the machine says itself what it is."""

    def restored(self, positions: Mapping[str, int]) -> None:
        """Hear that everything before an offset of each log was taken in."""
        self.snapshot(positions)
        self._save()

    def snapshot(self, positions: Mapping[str, int]) -> None:
        """Hear where logs end before the next commit: what the shelf has by then."""
        if self._saving is not None:
            self._saving.reach(positions)

    def _get(self, key: bytes) -> bytes | None:
        if self._saving is None or key in self._records:
            return self._records.get(key)
        return self._saving.shelf.get(self.prefix + key)

    def _put(self, key: bytes, value: bytes) -> None:
        self.changed.setdefault(key, self._records.get(key, ABSENT))
        self._records[key] = value

    def _delete(self, key: bytes) -> None:
        if self._get(key) is None:
            return
        self.changed.setdefault(key, self._records.get(key, ABSENT))
        if self._saving is None:
            del self._records[key]
        else:
            self._records[key] = None

    def _put_parts(self, key: bytes, value: bytes) -> None:
        """Write a record that lies in parts, or did so."""
        names = self._names(key)
        parts = []
        if len(value) > PART_BYTES:
            parts = [value[at : at + PART_BYTES] for at in range(0, len(value), PART_BYTES)]
        for number, part in enumerate(parts):
            name = _part_name(key, number)
            if number >= len(names) or self._get(name) != part:
                self._put(name, part)
        for name in names[len(parts) :]:
            self._delete(name)
        if parts:
            self._parts[key] = len(parts)
            self._put(key, _PARTED + b"%d" % len(parts))
        else:
            del self._parts[key]
            self._put(key, value)

    def _names(self, key: bytes) -> list[bytes]:
        """Return the keys of the parts of a record."""
        return [_part_name(key, number) for number in range(self._parts.get(key, 0))]

    def _see_parts(self, key: bytes, value: bytes | None) -> None:
        """Take note of how many parts a record has, while state is restored."""
        if value is not None and value.startswith(_PARTED) and not key.startswith(_PARTS):
            self._parts[key] = int(value[len(_PARTED) :])
        elif self._parts:
            self._parts.pop(key, None)

    def _changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        for key in self.changed:
            yield self.prefix + key, self._records.get(key)
        yield from self.notes.changes()

    def _save(self) -> None:
        if self._saving is None:
            return
        self._saving.save()
        self._records = {key: self._records[key] for key in self.changed}
        if self.machine is not None:
            self.machine.trim(KEPT_KEYS)


def _part_name(key: bytes, number: int) -> bytes:
    return _PARTS + key + number.to_bytes(_NUMBER, "big")
