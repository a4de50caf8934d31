"""The rows of one key on one side of a join: sorted by time, kept in chunks.

In the store a key has one record: its latest rows, and how many chunks each side has. When more
than a few rows are latest, they become a chunk, a record of its own that is written once. So what a
commit writes follows what came since the last one, also for a key with very many rows.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from penstock.core.panes.store import Store

__all__ = ["ALONE", "ANSWERED", "MATCHED", "Row", "RowCodec", "SideRows"]

Row: TypeAlias = Any
"""A struct with ``time``, ``state``, ``record``, and the number of its ``chunk``."""

ALONE, MATCHED, ANSWERED = 0, 1, 2
"""A row met no other; it met one; a result without a partner was given for it."""

_LATEST = 8
"""So many rows stay beside the head of their key before they become a chunk."""
_LATEST_OF_MANY = 64
"""The most, for a key that has thousands of rows."""
_CHUNK_BYTES = 256 << 10
"""A chunk of more than one row is no larger."""
_OPEN = -1


class RowCodec:
    """The rows of one side, and what they are as bytes: their records as their type has them."""

    def __init__(self, record: type[Any], *, tag: bytes) -> None:
        self.tag = tag
        """What the names of its chunks begin with."""
        fields = [("time", int), ("state", int), ("record", record), ("chunk", int)]
        # There may be very many, and they hold no cycles: the collector need not look at them.
        self.row: Any = msgspec.defstruct("Row", fields, array_like=True, gc=False)
        self.rows: Any = list[self.row]  # type: ignore[name-defined]
        self._decode = msgspec.msgpack.Decoder(self.rows).decode
        self._encode = msgspec.msgpack.Encoder().encode

    def name(self, key: bytes, number: int) -> bytes:
        """Return the name of a chunk in the store."""
        return b"%s%d.%s" % (self.tag, number, key)

    def encode(self, rows: list[Row]) -> bytes:
        """Return a chunk as bytes."""
        return self._encode(rows)

    def decode(self, chunk: bytes) -> list[Row]:
        """Return the rows of a chunk."""
        found: list[Row] = self._decode(chunk)
        return found


class SideRows:
    """Rows that wait for partners, in the order of their times, then of their arrival."""

    __slots__ = ("_chunks", "_first", "_latest", "_next", "_touched", "rows", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.rows: list[Row] = []
        self._latest: list[Row] = []
        """Rows that are in no chunk, as they arrived."""
        self._first = self._next = 0
        """Chunks have the numbers from the first to before the next; some may be gone."""
        self._chunks: dict[int, list[Row]] | None = None
        self._touched: set[int] | None = None
        """Chunks that are to be written again."""

    def add(self, row: Row) -> None:
        """Keep a row."""
        times, time = self.times, row.time
        if not times or time >= times[-1]:
            times.append(time)
            self.rows.append(row)
        else:
            at = bisect_right(times, time)
            times.insert(at, time)
            self.rows.insert(at, row)
        self._latest.append(row)

    def between(self, first: int, last: int) -> Sequence[Row]:
        """Return the rows of a span of time, both ends included."""
        times = self.times
        if not times or times[-1] < first or times[0] > last:
            return ()
        low = bisect_left(times, first)
        return self.rows[low : bisect_right(times, last, low)]

    def mark(self, row: Row, state: int) -> None:
        """Note what became of a row."""
        row.state = state
        if row.chunk != _OPEN:
            self._touch(row.chunk)

    def drop_before(self, time: int) -> None:
        """Forget the rows before a time."""
        times = self.times
        if not times or times[0] >= time:
            return
        count = bisect_left(times, time)
        if count == len(self._latest) == len(times):
            # The usual case: there are few rows, and all are of no use.
            self.times, self.rows, self._latest = [], [], []
            return
        gone = {row.chunk for row in self.rows[:count]}
        del self.times[:count], self.rows[:count]
        if _OPEN in gone:
            gone.remove(_OPEN)
            self._latest = [row for row in self._latest if row.time >= time]
        for number in gone:
            chunks = self._chunks or {}
            chunks[number] = [row for row in chunks[number] if row.time >= time]
            if not chunks[number]:
                self._touch(number)

    def packed(self) -> tuple[int, int, list[Row]]:
        """Return what the head of the key keeps of this side; call ``flush`` before."""
        return self._first, self._next, self._latest

    def load(self, packed: Any, chunks: Iterable[tuple[int, list[Row]]]) -> None:
        """Begin with what was kept."""
        self._first, self._next, self._latest = packed
        found: list[Row] = []
        for number, rows in chunks:
            for row in rows:
                row.chunk = number
            if self._chunks is None:
                self._chunks = {}
            self._chunks[number] = rows
            found += rows
        found += self._latest
        found.sort(key=_time)
        self.rows = found
        self.times = [row.time for row in found]

    def flush(self, store: Store, codec: RowCodec, key: bytes, *, whole: bool = False) -> None:
        """Write chunks that are new or changed; ``whole``: no row stays beside the head."""
        if self._touched is None and not whole and len(self._latest) <= _LATEST:
            return
        chunks = self._chunks = self._chunks or {}
        most = min(_LATEST_OF_MANY, _LATEST + len(self.rows) // _LATEST_OF_MANY)
        if whole or len(self._latest) > most:
            latest, self._latest = self._latest, []
            for rows, chunk in _chunked(latest, codec):
                for row in rows:
                    row.chunk = self._next
                chunks[self._next] = rows
                store.put(codec.name(key, self._next), chunk)
                self._next += 1
        for number in self._touched or ():
            if rows := chunks[number]:
                store.put(codec.name(key, number), codec.encode(rows))
            else:
                store.delete(codec.name(key, number))
                del chunks[number]
        self._touched = None
        while self._first < self._next and self._first not in chunks:
            self._first += 1

    def _touch(self, number: int) -> None:
        if self._touched is None:
            self._touched = set()
        self._touched.add(number)


def _chunked(rows: list[Row], codec: RowCodec) -> Iterator[tuple[list[Row], bytes]]:
    """Yield rows in chunks of a bounded size."""
    if not rows:
        return
    chunk = codec.encode(rows)
    if len(chunk) <= _CHUNK_BYTES or len(rows) == 1:
        yield rows, chunk
        return
    half = len(rows) // 2
    yield from _chunked(rows[:half], codec)
    yield from _chunked(rows[half:], codec)


def _time(row: Row) -> int:
    found: int = row.time
    return found
