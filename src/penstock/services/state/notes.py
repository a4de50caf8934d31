"""What a task keeps on its changelog beside its state: how far it had read, how its states lie.

A note's key begins with a zero byte, as no state's does. Notes go where the state goes: they are in
the same commit, on the shelf, and in the copies of a standby.
"""

from collections.abc import Iterator

__all__ = ["LAYOUT_KEY", "NOTE_KEYS", "POSITIONS_KEY", "Notes"]

POSITIONS_KEY = b"\x00positions"
"""How far the inputs had been read when the state was committed."""
LAYOUT_KEY = b"\x00layout"
"""How each state lies on the changelog."""
NOTE_KEYS = (POSITIONS_KEY, LAYOUT_KEY)


class Notes:
    """The notes of one task, and which of them the changelog does not have yet."""

    def __init__(self) -> None:
        self._held: dict[bytes, bytes] = {}
        self._changed: set[bytes] = set()

    def get(self, key: bytes) -> bytes | None:
        """Return a note, or None."""
        return self._held.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Write a note, where it says something new."""
        if self._held.get(key) != value:
            self._held[key] = value
            self._changed.add(key)

    def state(self, key: bytes, value: bytes) -> None:
        """Write a note in any case: it says that a commit ends here."""
        self._held[key] = value
        self._changed.add(key)

    def apply(self, key: bytes, value: bytes | None) -> bool:
        """Take in a record of the changelog; return whether it is a note."""
        if key not in NOTE_KEYS:
            return False
        if value is None:
            self._held.pop(key, None)
        else:
            self._held[key] = value
        return True

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield a changelog record for every note that changed since the last commit."""
        for key in sorted(self._changed):
            yield key, self._held[key]

    def settle(self) -> None:
        """Forget what changed: its changelog records are committed."""
        self._changed.clear()
