"""A set of values by key in the store of a machine, which can be gone through.

A store finds a record by its key alone. So the keys are written too, in pages by their hash. A
change of a value writes that value; a new key, or one that goes, also its page.
"""

from collections.abc import Iterator
from zlib import crc32

from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store

__all__ = ["Directory"]

_PAGE_KEYS = 64
"""There are twice as many pages as soon as one holds more than so many keys on average."""


class Directory:
    """Values by key under a tag. The keys are in memory, the values in the store."""

    def __init__(self, store: Store, tag: bytes) -> None:
        self._store = store
        self._tag = tag
        self._bits = 0
        self._pages: list[set[bytes]] = [set()]
        self._count = 0
        self._dirty: set[int] = set()
        if (head := store.get(self._name(b"h"))) is not None:
            self._load(decode(head))

    def __len__(self) -> int:
        """Return how many values there are."""
        return self._count

    def get(self, key: bytes) -> bytes | None:
        """Return a value, or None."""
        return self._store.get(self._name(b"v", key))

    def put(self, key: bytes, value: bytes) -> None:
        """Keep a value."""
        page = self._page(key)
        if key not in self._pages[page]:
            self._pages[page].add(key)
            self._dirty.add(page)
            self._count += 1
        self._store.put(self._name(b"v", key), value)

    def delete(self, key: bytes) -> None:
        """Forget a value that may be there."""
        page = self._page(key)
        if key in self._pages[page]:
            self._pages[page].remove(key)
            self._dirty.add(page)
            self._count -= 1
            self._store.delete(self._name(b"v", key))

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Return all keys with their values, in the order of their pages."""
        for page in self._pages:
            for key in sorted(page):
                if (value := self.get(key)) is not None:
                    yield key, value

    def values(self) -> Iterator[bytes]:
        """Return all values in the same order."""
        return (value for _, value in self.items())

    def clear(self) -> None:
        """Forget everything, also that it was there; nothing is to be flushed after it."""
        for number, page in enumerate(self._pages):
            for key in page:
                self._store.delete(self._name(b"v", key))
            self._store.delete(self._name(b"p", b"%d" % number))
        self._store.delete(self._name(b"h"))
        self._bits, self._pages, self._count = 0, [set()], 0
        self._dirty.clear()

    def flush(self) -> None:
        """Write the pages that changed."""
        if not self._dirty:
            return
        while self._count > _PAGE_KEYS << self._bits:
            self._double()
        self._store.put(self._name(b"h"), encode(self._bits))
        for number in self._dirty:
            page = sorted(self._pages[number])
            if page:
                self._store.put(self._name(b"p", b"%d" % number), encode(page))
            else:
                self._store.delete(self._name(b"p", b"%d" % number))
        self._dirty.clear()

    def _double(self) -> None:
        keys = [key for page in self._pages for key in page]
        self._bits += 1
        self._pages = [set() for _ in range(1 << self._bits)]
        for key in keys:
            self._pages[self._page(key)].add(key)
        self._dirty = set(range(1 << self._bits))

    def _load(self, bits: int) -> None:
        self._bits = bits
        self._pages = []
        for number in range(1 << bits):
            found = self._store.get(self._name(b"p", b"%d" % number))
            self._pages.append(set() if found is None else set(decode(found)))
        self._count = sum(map(len, self._pages))

    def _page(self, key: bytes) -> int:
        return crc32(key) & ((1 << self._bits) - 1)

    def _name(self, kind: bytes, rest: bytes = b"") -> bytes:
        return b"%b%b%b" % (self._tag, kind, rest)
