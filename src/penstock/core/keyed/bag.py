"""For each key a bag of values: each with how often it is there, smallest first when asked.

Values are plain: numbers, texts, and lists of them. A bag is cut into pages by the hash of its
values, in the store as in memory: a change looks at one page and writes it, however many values
there are. All of a bag that is in use is in memory.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store

__all__ = ["Bag"]

_PAGE_VALUES = 64
"""There are twice as many pages as soon as one holds more than so many values on average."""


class _Held:
    """The values of one key."""

    __slots__ = ("dirty", "made", "order", "pages", "size", "stale")

    def __init__(self, pages: list[dict[Any, int]]) -> None:
        self.pages = pages
        """By the hash of the value; a power of two of them."""
        self.size = sum(map(len, pages))
        self.order: list[Any] | None = None
        """The values, smallest first, once somebody has asked for them."""
        self.dirty: set[int] = set()
        self.made: dict[int, bytes] = {}
        """What was made of these pages."""
        self.stale: set[int] = set()
        """Pages that have changed since."""

    def page(self, value: Any) -> int:
        """Return the page of a value."""
        return crc32(encode(value)) & (len(self.pages) - 1)

    def counts(self) -> Iterator[tuple[Any, int]]:
        """Yield each value with how often it is there."""
        for page in self.pages:
            yield from page.items()

    def in_order(self) -> list[Any]:
        """Return the values, smallest first."""
        if self.order is None:
            self.order = sorted(value for page in self.pages for value in page)
        return self.order

    def grow(self) -> None:
        """Let there be twice as many pages until they are small enough."""
        count = len(self.pages)
        while self.size > _PAGE_VALUES * count:
            count *= 2
        if count == len(self.pages):
            return
        before, self.pages = self.pages, [{} for _ in range(count)]
        for page in before:
            for value, often in page.items():
                self.pages[self.page(value)][value] = often
        self.dirty = set(range(count))
        self.made, self.stale = {}, set()


class Bag:
    """Bags of values by key."""

    def __init__(self, store: Store, *, tag: bytes) -> None:
        self._store = store
        self._tag = tag
        self._held: dict[bytes, _Held] = {}
        self._dirty: set[bytes] = set()

    def holds(self, key: bytes, value: Any) -> bool:
        """Return whether a value is there."""
        held, value = self._of(key), _frozen(value)
        return value in held.pages[held.page(value)]

    def size(self, key: bytes) -> int:
        """Return how many different values are there."""
        return self._of(key).size

    def pages(self, key: bytes) -> Sequence[Mapping[Any, int]]:
        """Return how often each value is there, page by page."""
        return self._of(key).pages

    def made(self, key: bytes) -> tuple[dict[int, bytes], set[int]]:
        """Return what was made of the pages, to go on with, and which have changed since.

        It is empty at first, and again where values have moved to other pages.
        """
        held = self._of(key)
        stale, held.stale = held.stale, set()
        return held.made, stale

    def values(self, key: bytes) -> list[Any]:
        """Return the values, each once, smallest first."""
        return list(self._of(key).in_order())

    def all_of(self, key: bytes) -> list[Any]:
        """Return the values, each as often as it is there, smallest first."""
        held = self._of(key)
        counts = dict(held.counts())
        return [value for value in held.in_order() for _ in range(counts[value])]

    def first(self, key: bytes) -> Any | None:
        """Return the smallest value, or None."""
        order = self._of(key).in_order()
        return order[0] if order else None

    def last(self, key: bytes) -> Any | None:
        """Return the largest value, or None."""
        order = self._of(key).in_order()
        return order[-1] if order else None

    def largest(self, key: bytes, most: int) -> list[Any]:
        """Return at most so many values, each as often as it is there, largest first."""
        held, found = self._of(key), list[Any]()
        for value in reversed(held.in_order()):
            found += [value] * min(held.pages[held.page(value)][value], most - len(found))
            if len(found) >= most:
                break
        return found

    def add(self, key: bytes, value: Any) -> None:
        """Put a value in, once more."""
        held, value = self._of(key), _frozen(value)
        number = held.page(value)
        page = held.pages[number]
        before = page.get(value, 0)
        page[value] = before + 1
        if not before:
            held.size += 1
            if held.order is not None:
                insort(held.order, value)
        self._touch(key, held, number)

    def remove(self, key: bytes, value: Any) -> None:
        """Take a value out once, where it is there."""
        held, value = self._of(key), _frozen(value)
        number = held.page(value)
        page = held.pages[number]
        before = page.get(value, 0)
        if not before:
            return
        if before > 1:
            page[value] = before - 1
        else:
            del page[value]
            held.size -= 1
            if held.order is not None:
                del held.order[bisect_left(held.order, value)]
        self._touch(key, held, number)

    def sweep(self, mark: int) -> None:
        """Do nothing: a value is there until it is taken out."""

    def flush(self) -> None:
        """Write what changed."""
        for key in self._dirty:
            held = self._held[key]
            if not held.size:
                for number in range(len(held.pages)):
                    self._store.delete(self._name(key, number))
                del self._held[key]
                continue
            held.grow()
            bits = len(held.pages).bit_length() - 1
            for number in held.dirty:
                page = list(held.pages[number].items())
                kept = encode((bits, page)) if number == 0 else encode(page)
                self._store.put(self._name(key, number), kept)
            held.dirty.clear()
        self._dirty.clear()

    def trim(self, most: int) -> None:
        """Forget what is in the store, where more than so many keys are in memory."""
        if len(self._held) > most:
            self._held = {key: self._held[key] for key in self._dirty}

    def slots(self) -> None:
        """Return nothing: all of it is with the keys."""

    def begin(self, slots: None, mark: int) -> None:
        """Go on from where another one was."""

    def _touch(self, key: bytes, held: _Held, number: int) -> None:
        held.dirty.add(number)
        held.stale.add(number)
        self._dirty.add(key)

    def _of(self, key: bytes) -> _Held:
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = self._load(key)
            if not held.size:
                self._dirty.add(key)  # if nothing comes into it, it is forgotten then
        return held

    def _load(self, key: bytes) -> _Held:
        found = self._store.get(self._name(key, 0))
        if found is None:
            return _Held([{}])
        bits, first = decode(found)
        pages = [_page(first)]
        for number in range(1, 1 << bits):
            found = self._store.get(self._name(key, number))
            pages.append({} if found is None else _page(decode(found)))
        return _Held(pages)

    def _name(self, key: bytes, number: int) -> bytes:
        # The first page is beside what else is kept of the key.
        return self._tag + key if number == 0 else b"%s%d.%s" % (self._tag.upper(), number, key)


def _page(pairs: Sequence[Any]) -> dict[Any, int]:
    return {_frozen(value): count for value, count in pairs}


def _frozen(value: Any) -> Any:
    """Return a value that can be in a dict, and has one page: lists are tuples, -0.0 is 0.0."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(each) for each in value)
    return value + 0.0 if isinstance(value, float) else value
