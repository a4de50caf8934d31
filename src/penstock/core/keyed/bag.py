"""For each key a bag of values: each with how often it is there, smallest first when asked.

Values are plain: numbers, texts, and lists of them. In the store a bag is cut into pages by the
hash of its values, so that a change writes one small record, however many values there are. All of
a bag that is in use is in memory.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

from penstock.core.panes.bucket import Store
from penstock.core.panes.packing import decode, encode

__all__ = ["Bag"]

_PAGE_VALUES = 64
"""There are twice as many pages as soon as one holds more than so many values on average."""


class _Held:
    """The values of one key."""

    __slots__ = ("bits", "counts", "dirty", "order")

    def __init__(self) -> None:
        self.bits = 0
        """There are 2^bits pages."""
        self.counts: dict[Any, int] = {}
        self.order: list[Any] | None = None
        """The values, smallest first, once somebody has asked for them."""
        self.dirty: set[int] = set()

    def page(self, value: Any) -> int:
        """Return the page of a value."""
        return crc32(encode(value)) & ((1 << self.bits) - 1)


class Bag:
    """Bags of values by key."""

    def __init__(self, store: Store, *, tag: bytes) -> None:
        self._store = store
        self._tag = tag
        self._held: dict[bytes, _Held] = {}
        self._dirty: set[bytes] = set()

    def holds(self, key: bytes, value: Any) -> bool:
        """Return whether a value is there."""
        return _frozen(value) in self._of(key).counts

    def counts(self, key: bytes) -> Mapping[Any, int]:
        """Return how often each value is there."""
        return self._of(key).counts

    def values(self, key: bytes) -> list[Any]:
        """Return the values, each once, smallest first."""
        held = self._of(key)
        if held.order is None:
            held.order = sorted(held.counts)
        return list(held.order)

    def first(self, key: bytes) -> Any | None:
        """Return the smallest value, or None."""
        return self._end(key, 0)

    def last(self, key: bytes) -> Any | None:
        """Return the largest value, or None."""
        return self._end(key, -1)

    def add(self, key: bytes, value: Any) -> None:
        """Put a value in, once more."""
        held, value = self._of(key), _frozen(value)
        before = held.counts.get(value, 0)
        held.counts[value] = before + 1
        if not before and held.order is not None:
            insort(held.order, value)
        self._touch(key, held, value)

    def remove(self, key: bytes, value: Any) -> None:
        """Take a value out once, where it is there."""
        held, value = self._of(key), _frozen(value)
        before = held.counts.get(value, 0)
        if not before:
            return
        if before > 1:
            held.counts[value] = before - 1
        else:
            del held.counts[value]
            if held.order is not None:
                del held.order[bisect_left(held.order, value)]
        self._touch(key, held, value)

    def sweep(self, mark: int) -> None:
        """Do nothing: a value is there until it is taken out."""

    def flush(self) -> None:
        """Write what changed."""
        for key in self._dirty:
            held = self._held[key]
            if len(held.counts) > _PAGE_VALUES << held.bits:
                while len(held.counts) > _PAGE_VALUES << held.bits:
                    held.bits += 1
                held.dirty = set(range(1 << held.bits))
            if not held.counts:
                for number in range(1 << held.bits):
                    self._store.delete(self._name(key, number))
                del self._held[key]
                continue
            pages: dict[int, list[Any]] = {number: [] for number in held.dirty | {0}}
            for value, count in held.counts.items():
                page = pages.get(held.page(value))
                if page is not None:
                    page.append((value, count))
            for number, page in pages.items():
                kept = encode((held.bits, page)) if number == 0 else encode(page)
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

    def _end(self, key: bytes, at: int) -> Any | None:
        held = self._of(key)
        if held.order is None:
            held.order = sorted(held.counts)
        return held.order[at] if held.order else None

    def _touch(self, key: bytes, held: _Held, value: Any) -> None:
        held.dirty.add(held.page(value))
        self._dirty.add(key)

    def _of(self, key: bytes) -> _Held:
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = self._load(key)
            if not held.counts:
                self._dirty.add(key)  # if nothing comes into it, it is forgotten then
        return held

    def _load(self, key: bytes) -> _Held:
        held = _Held()
        found = self._store.get(self._name(key, 0))
        if found is not None:
            held.bits, first = decode(found)
            for value, count in (*first, *self._further(key, held.bits)):
                held.counts[_frozen(value)] = count
        return held

    def _further(self, key: bytes, bits: int) -> Iterator[tuple[Any, int]]:
        for number in range(1, 1 << bits):
            found = self._store.get(self._name(key, number))
            if found is not None:
                yield from decode(found)

    def _name(self, key: bytes, number: int) -> bytes:
        # The first page is beside what else is kept of the key.
        return self._tag + key if number == 0 else b"%s%d.%s" % (self._tag.upper(), number, key)


def _frozen(value: Any) -> Any:
    """Return a value that can be in a dict: lists have become tuples."""
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value
