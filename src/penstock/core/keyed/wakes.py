"""What is to be done at a moment of event time, in the order of the moments.

Far ahead it waits in slots (:mod:`penstock.core.panes.waiting`). When event time enters a slot, all
of it goes into a heap, so that event time can move on by a microsecond at a time. In the store each
entry is written once as it is added, and once as its slot is entered; nothing is written when it is
done. After a restart an entry of the slot may therefore come again: whoever takes it knows whether
it is still to be done.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any

from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING, NEVER
from penstock.core.panes.waiting import SLOT, Waiting

__all__ = ["Wakes"]


class Wakes:
    """Moments and keys. ``first`` is the moment before which nothing is due."""

    def __init__(self, store: Store, *, tag: bytes) -> None:
        self._store = store
        self._tag = tag
        self._far = Waiting(tag.decode(), store)
        self._near: list[tuple[int, bytes]] = []
        """A heap of all before the edge."""
        self._edge = BEGINNING
        self._fresh: list[tuple[int, bytes]] = []
        """Those of the heap that are not in the store."""
        self._chunks = 0
        """How many records of the heap are in the store."""
        self.first = NEVER

    def begin(self, kept: Any) -> None:
        """Go on from what :meth:`kept` gave."""
        self._edge, self._chunks, slots = kept
        self._far.load(slots)
        self._far.now = self._edge - 1
        for number in range(self._chunks):
            found = self._store.get(self._name(number))
            self._near += (tuple(each) for each in decode(found or b"\x90"))
        heapify(self._near)
        self._look()

    def kept(self) -> Any:
        """Return what to go on from; call ``flush`` before."""
        return self._edge, self._chunks, self._far.slots()

    def add(self, moment: int, key: bytes) -> None:
        """Let something wait for a moment."""
        if moment < self._edge:
            heappush(self._near, (moment, key))
            self._fresh.append((moment, key))
        else:
            self._far.add(moment, key)
        self.first = min(self.first, moment)

    def due(self, mark: int, most: int | None = None) -> list[tuple[int, bytes]]:
        """Return what waits for a moment that has come, the first ones first, and about so many."""
        found: list[tuple[int, bytes]] = []
        while self.first <= mark and (most is None or len(found) < most):
            if mark >= self._edge:
                self._enter(mark)
            near = self._near
            while near and near[0][0] <= mark and (most is None or len(found) < most):
                found.append(heappop(near))
            self._look()
        return found

    def flush(self) -> None:
        """Write what is not in the store."""
        self._far.flush()
        if not self._near:
            self._forget()
        elif self._fresh:
            self._store.put(self._name(self._chunks), encode(self._fresh))
            self._chunks += 1
            self._fresh = []

    def _forget(self) -> None:
        for number in range(self._chunks):
            self._store.delete(self._name(number))
        self._chunks = 0
        self._fresh = []

    def _enter(self, mark: int) -> None:
        """Take all up to the end of a slot into the heap."""
        self._forget()
        self._edge = (mark // SLOT + 1) * SLOT
        while rows := self._far.due_rows(self._edge - 1):
            self._push(rows)
        # Those that were there before are to be written under the new edge too.
        self._fresh = list(self._near)

    def _push(self, rows: Iterable[tuple[int, bytes]]) -> None:
        for row in rows:
            heappush(self._near, row)

    def _look(self) -> None:
        near = self._near[0][0] if self._near else NEVER
        far = self._far.first
        self.first = near if far is None or near < far else far

    def _name(self, number: int) -> bytes:
        return b"%sn%d" % (self._tag, number)
