"""Keys that wait for moments: in a store by slot, in chunks, and lately in memory.

A moment's slot is its second; far ahead slots are wider, so that there are few of them however far
ahead keys wait. A key is appended once for each moment it waits for, and nothing is sorted. When a
slot is due, its chunks are read and deleted one at a time, so that whoever asks can stop between
any two of them. Keys of a wide slot that wait on go to narrower ones (a hierarchical timing wheel),
so a key is read a few times before its moment, not each time that the watermark moves.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING, NEVER

__all__ = ["CHUNK_KEYS", "SLOT", "SLOTS_OF_A_WIDTH", "Waiting"]

SLOT = 1_000_000
"""Moments of one slot: a second of microseconds."""
SLOTS_OF_A_WIDTH = 256
"""So many slots from now on are of that width; up to four times as far ahead they are four times
as wide, and so on: 2,000 slots for a year, 3,200 for all of time."""
CHUNK_KEYS = 2_000
"""The most keys of one chunk: of one record of the store."""

_WIDER = 4

Row = tuple[int, bytes]


class Waiting:
    """The keys that wait for one kind of time, the watermark or the clock."""

    def __init__(self, kind: str, store: Store) -> None:
        self._kind = kind
        self._store = store
        self._chunks: dict[int, int] = {}
        """By slot: how many chunks it has in the store."""
        self._lately: dict[int, list[list[Row]]] = {}
        """By slot: chunks that are not in the store yet."""
        self._firsts: dict[int, int] = {}
        """By slot: the first moment that a key in it waits for, or an earlier one."""
        self._order: list[tuple[int, int]] = []
        """First moments with their slots, as a heap; those that are not the slot's any more too."""
        self.now = BEGINNING
        """The last moment that has come; slots are the wider the further they are from it."""

    def load(self, slots: Mapping[int, Sequence[int]]) -> None:
        """Begin with what :meth:`slots` gave."""
        self._chunks = {slot: count for slot, (count, _) in slots.items()}
        self._firsts = {slot: first for slot, (_, first) in slots.items()}
        self._order = [(first, slot) for slot, first in self._firsts.items()]
        heapify(self._order)

    def slots(self) -> dict[int, tuple[int, int]]:
        """Return, by slot, how many chunks it has in the store, and the first moment of them."""
        return {slot: (count, self._firsts[slot]) for slot, count in self._chunks.items()}

    @property
    def first(self) -> int | None:
        """The first moment that a key waits for, or an earlier one."""
        while self._order:
            first, slot = self._order[0]
            if self._firsts.get(slot) == first:
                return first
            heappop(self._order)
        return None

    def is_due(self, moment: int) -> bool:
        """Whether a key may wait for a moment that has come."""
        first = self.first
        return first is not None and first <= moment

    def add(self, moment: int, key: bytes) -> None:
        """Let a key wait for a moment."""
        self._file(self._slot(moment), (moment, key))

    def due(self, moment: int) -> list[bytes]:
        """Return some of the keys that wait for a moment which has come; none: nobody does.

        They wait no longer.
        """
        return [key for _, key in self.due_rows(moment)]

    def due_rows(self, moment: int) -> list[Row]:
        """Return some of the keys that wait for a moment which has come, each with its own."""
        self.now = moment
        while self.is_due(moment):
            slot = self._order[0][1]
            rows = self._next_chunk(slot)
            if rows is None:
                heappop(self._order)
                del self._firsts[slot]
                continue
            found = []
            for row in rows:
                if row[0] <= moment:
                    found.append(row)
                else:
                    self._wait_on(row, slot)
            if found:
                return found
        return []

    def flush(self) -> None:
        """Write what is in memory as further chunks."""
        for slot, chunks in self._lately.items():
            count = self._chunks.get(slot, 0)
            for rows in chunks:
                self._store.put(self._name(slot, count), encode(rows))
                count += 1
            self._chunks[slot] = count
        self._lately.clear()

    def _slot(self, moment: int) -> int:
        width, ahead = SLOT, moment - self.now
        while ahead >= width * SLOTS_OF_A_WIDTH:
            width *= _WIDER
        return moment - moment % width

    def _wait_on(self, row: Row, drained: int) -> None:
        """Let a row of a slot that is being drained go on waiting, in another slot."""
        slot = self._slot(row[0])
        # Not into the one that is drained: it would come round again and again.
        self._file(self.now + 1 if slot == drained else slot, row)

    def _file(self, slot: int, row: Row) -> None:
        chunks = self._lately.get(slot)
        if chunks is None:
            chunks = self._lately[slot] = [[]]
        if len(chunks[-1]) >= CHUNK_KEYS:
            chunks.append([])
        chunks[-1].append(row)
        self._expect(slot, row[0])

    def _expect(self, slot: int, moment: int) -> None:
        if moment < self._firsts.get(slot, NEVER + 1):
            self._firsts[slot] = moment
            heappush(self._order, (moment, slot))

    def _next_chunk(self, slot: int) -> list[Row] | None:
        """Take the next chunk of a slot out; None: there is none left."""
        if chunks := self._lately.get(slot):
            rows = chunks.pop()
            if not chunks:
                del self._lately[slot]
            return rows
        if count := self._chunks.pop(slot, 0):
            name = self._name(slot, count - 1)
            rows = [(waits_for, key) for waits_for, key in decode(self._store.get(name) or b"\x90")]
            self._store.delete(name)
            if count > 1:
                self._chunks[slot] = count - 1
            return rows
        return None

    def _name(self, slot: int, number: int) -> bytes:
        return f"{self._kind}{slot}.{number}".encode()
