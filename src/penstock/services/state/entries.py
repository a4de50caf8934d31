"""All entries of a shelf as they were at one moment."""

from collections.abc import Iterator

from rocksdict import RdictIter

from penstock.errors import TransientError

__all__ = ["Entries"]


class Entries:
    """The entries of a shelf as they were at one moment. Not for several threads at once."""

    def __init__(self, iterator: RdictIter) -> None:
        # An iterator shows the moment it was made; those of the binding's snapshots do not.
        self._iterator = iterator

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, None where there was none."""
        found = self._iterator
        found.seek(key)
        if found.valid() and found.key() == key:
            value: bytes = found.value()
            return value
        self._check()
        return None

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries whose keys begin so, in the order of their bytes."""
        found = self._iterator
        found.seek(prefix)
        while found.valid() and (key := found.key()).startswith(prefix):
            yield key, found.value()
            found.next()
        self._check()

    def chunk(self, prefix: bytes, after: bytes, most: int) -> list[tuple[bytes, bytes]]:
        """Return entries whose keys begin so, what follows the prefix from ``after`` on."""
        rows: list[tuple[bytes, bytes]] = []
        found, cut = self._iterator, len(prefix)
        found.seek(prefix + after)
        while len(rows) < most and found.valid() and (key := found.key()).startswith(prefix):
            rows.append((key[cut:], found.value()))
            found.next()
        self._check()
        return rows

    def _check(self) -> None:
        """Raise what went wrong on the disk, which looks like the end."""
        try:
            self._iterator.status()
        except Exception as error:
            raise TransientError(
                "reading the state on disk failed", code="state.disk", detail=str(error)
            ) from error
