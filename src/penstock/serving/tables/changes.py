"""What changes in a table: told to those who listen, and again to those who come back.

Who listens has a bounded queue. Whoever does not keep up is let go, and comes back with the
position they have reached: what came since is told again, if that is not too long ago.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

__all__ = ["KEPT_CHANGES", "MOST_WAITING", "Change", "Changes", "Listening", "mark", "read_mark"]

KEPT_CHANGES = 10_000
"""So many changes of a table are kept for those who come back."""
MOST_WAITING = 1000
"""So many changes may wait for one who listens."""

_MOST_MARK = 4096
_MOST_DIGITS = 24


@dataclass(frozen=True, slots=True)
class Change:
    """A row before and after; None: there was none, or there is none any more."""

    partition: int
    offset: int
    key: bytes
    before: bytes | None
    after: bytes | None


class Listening:
    """One who listens to the keys that begin so, or to one key; for one event loop."""

    def __init__(self, *, prefix: bytes, key: bytes | None) -> None:
        self._prefix = prefix
        self._key = key
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[list[Change] | None] = asyncio.Queue()
        self._waiting = 0
        self._lock = threading.Lock()
        self.behind = False
        """Whether it was let go because it does not keep up."""

    @property
    def first(self) -> bytes:
        """The first key that may be for it."""
        return self._prefix if self._key is None else self._key

    def beyond(self, key: bytes) -> bool:
        """Return whether neither a key nor any behind it is for it."""
        return key > self._key if self._key is not None else not key.startswith(self._prefix)

    def wants(self, key: bytes) -> bool:
        """Return whether changes of a key are for it."""
        return key.startswith(self._prefix) and (self._key is None or key == self._key)

    def tell(self, changes: Iterable[Change]) -> bool:
        """Take changes, from any thread; return whether it listens on."""
        wanted = [change for change in changes if self.wants(change.key)]
        if not wanted:
            return not self.behind
        with self._lock:
            self._waiting += len(wanted)
            self.behind = self._waiting > MOST_WAITING
        self._pass_on(None if self.behind else wanted)
        return not self.behind

    def end(self) -> None:
        """Hear, from any thread, that nothing more will come."""
        self._pass_on(None)

    async def next(self, *, seconds: float) -> list[Change] | None:
        """Return the next changes, none after so many seconds; None: it is over."""
        try:
            async with asyncio.timeout(seconds):
                found = await self._queue.get()
        except TimeoutError:
            return []
        if found is not None:
            with self._lock:
                self._waiting -= len(found)
        return found

    def _pass_on(self, changes: list[Change] | None) -> None:
        self._loop.call_soon_threadsafe(self._queue.put_nowait, changes)


class Changes:
    """The last changes of a table, and those who listen. Whoever uses it holds the table's lock."""

    def __init__(self, *, most: int = KEPT_CHANGES) -> None:
        self._kept: deque[Change] = deque(maxlen=most)
        self._from: dict[int, int] = {}
        """For each partition: everything from this offset on is kept."""
        self._listening: list[Listening] = []

    def begin(self, positions: Mapping[int, int]) -> None:
        """Begin anew: what is behind these positions is not kept, and who listens is let go."""
        self._kept.clear()
        self._from = dict(positions)
        for each in self._listening:
            each.end()
        self._listening = []

    def add(self, changes: list[Change]) -> None:
        """Take changes in the order of the log, and tell them."""
        for change in changes:
            if len(self._kept) == self._kept.maxlen:
                oldest = self._kept[0]
                self._from[oldest.partition] = oldest.offset + 1
            self._kept.append(change)
        self._listening = [each for each in self._listening if each.tell(changes)]

    def listen(self, listening: Listening) -> None:
        """Tell one who listens what comes from now on."""
        self._listening.append(listening)

    def leave(self, listening: Listening) -> None:
        """Tell one nothing more."""
        self._listening = [each for each in self._listening if each is not listening]

    def since(self, positions: Mapping[int, int]) -> Iterator[Change] | None:
        """Return what changed since positions; None: that is too long ago, or was another table."""
        if positions.keys() != self._from.keys():
            return None
        if any(positions[number] < first for number, first in self._from.items()):
            return None
        return (each for each in list(self._kept) if each.offset >= positions[each.partition])


def mark(positions: Mapping[int, int]) -> str:
    """Return positions as the id of an event: ``0:12,1:9``."""
    return ",".join(f"{number}:{offset}" for number, offset in sorted(positions.items()))


def read_mark(text: str) -> dict[int, int] | None:
    """Return the positions that an id of an event is; None: it is none of ours."""
    found: dict[int, int] = {}
    if len(text) > _MOST_MARK:
        return None
    for piece in text.split(","):
        number, _, offset = piece.partition(":")
        plain = number + offset
        if not (
            number
            and offset
            and plain.isascii()
            and plain.isdecimal()
            and len(plain) <= _MOST_DIGITS
        ):
            return None
        found[int(number)] = int(offset)
    return found
