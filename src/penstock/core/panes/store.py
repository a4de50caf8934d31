"""Where a machine keeps what it remembers: an engine's state, or memory."""

from typing import Protocol

__all__ = ["MemoryStore", "Store"]


class Store(Protocol):
    """Where the records of a machine are: bytes to bytes."""

    def get(self, key: bytes) -> bytes | None:
        """Return a record, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""

    def delete(self, key: bytes) -> None:
        """Delete a record that may be there."""


class MemoryStore(dict[bytes, bytes]):
    """A store that lives as long as its process."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""
        self[key] = value

    def delete(self, key: bytes) -> None:
        """Delete a record that may be there."""
        self.pop(key, None)
