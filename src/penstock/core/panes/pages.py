"""Many keys in one record of a store, for stores where every call is a round trip.

Keys are put on pages by their hash. There is one more page as soon as a page holds more than
:data:`KEYS_ON_A_PAGE` on average, so that a batch that touches every key costs few calls, and one
that touches few does not move them all. The new page takes keys of one other page, and no other is
read for it (linear hashing).
"""

from zlib import crc32

from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store

__all__ = ["KEYS_ON_A_PAGE", "PagedStore"]

KEYS_ON_A_PAGE = 256

_KEY = b"k"
_META = b"p"
_HASH_SHIFT = 8
"""Buckets are chosen by the lowest bits of the same hash."""

Page = dict[bytes, bytes]


class PagedStore:
    """Keeps the keys of a bucket on pages of another store, and everything else as it is.

    What was put is in the other store after :meth:`flush`.
    """

    def __init__(self, inner: Store, *, keys_on_a_page: int = KEYS_ON_A_PAGE) -> None:
        self._inner = inner
        self._limit = keys_on_a_page
        self._pages: dict[int, Page] = {}
        self._dirty: set[int] = set()
        self._bits = self._count = self._split = 0
        """There are 2^bits pages, and another one for each of them that was split since."""
        if (meta := inner.get(_META)) is not None:
            # A release before split all pages at once, and did not say how many.
            self._bits, self._count, self._split = (*decode(meta), 0)[:3]

    def get(self, key: bytes) -> bytes | None:
        """Return a record, or None."""
        if not key.startswith(_KEY):
            return self._inner.get(key)
        return self._page(self._number(key)).get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record."""
        if not key.startswith(_KEY):
            self._inner.put(key, value)
            return
        number = self._number(key)
        page = self._page(number)
        self._count += key not in page
        page[key] = value
        self._dirty.add(number)

    def delete(self, key: bytes) -> None:
        """Delete a record that may be there."""
        if not key.startswith(_KEY):
            self._inner.delete(key)
            return
        number = self._number(key)
        if self._page(number).pop(key, None) is not None:
            self._count -= 1
            self._dirty.add(number)

    def flush(self) -> None:
        """Write what changed."""
        if not self._dirty:
            return
        while self._count > self._limit * self._pages_there:
            self._grow()
        for number in self._dirty:
            if page := self._pages[number]:
                self._inner.put(_name(number), encode(page))
            else:
                self._inner.delete(_name(number))
        self._inner.put(_META, encode((self._bits, self._count, self._split)))
        self._dirty.clear()
        self._pages.clear()

    def place(self, key: bytes) -> int:
        """Return a number for the page of a bucket's key; keys of one page have the same one."""
        return self._number(_KEY + key)

    @property
    def _pages_there(self) -> int:
        return (1 << self._bits) + self._split

    def _number(self, key: bytes) -> int:
        found = crc32(key) >> _HASH_SHIFT
        number = found & ((1 << self._bits) - 1)
        return number if number >= self._split else found & ((2 << self._bits) - 1)

    def _page(self, number: int) -> Page:
        page = self._pages.get(number)
        if page is None:
            found = self._inner.get(_name(number))
            page = self._pages[number] = {} if found is None else decode(found)
        return page

    def _grow(self) -> None:
        """Add a page: it takes the keys of one other that have one more bit in their hash."""
        old, new = self._split, self._pages_there
        page = self._page(old)
        self._split += 1
        self._pages[new] = {key: page[key] for key in page if self._number(key) == new}
        for key in self._pages[new]:
            del page[key]
        self._dirty |= {old, new}
        if self._split == 1 << self._bits:
            self._bits, self._split = self._bits + 1, 0


def _name(number: int) -> bytes:
    return f"p{number}".encode()
