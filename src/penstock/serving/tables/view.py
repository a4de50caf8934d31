"""A table as a gateway has it: every row in memory, following its topic.

Rows come one after the other, as they stand on the log: those of one commit of a service may be
seen one by one. The states of services are read in cuts, which show whole commits.
"""

import bisect
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import RawRecord
from penstock.backbone.log.follower import Follower, attempts
from penstock.errors import PenstockError
from penstock.serving.tables.changes import Change, Changes, Listening

__all__ = ["READING", "ROW_BYTES", "Beginning", "Page", "TableView"]

LOG = logging.getLogger("penstock.serving")
READING = "the table is being read"
"""The trouble of a table that has only just begun."""
ROW_BYTES = 200
"""What a row costs beside its key and its value, about."""
_TAKE_SECONDS = 0.1
_TIDY_KEYS = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows in the order of their keys; ``more``: there are further ones."""

    rows: list[tuple[bytes, bytes]]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What a client that begins to listen is told first: the rows, or what changed since."""

    positions: dict[int, int]
    since: list[Change] | None = None
    rows: list[tuple[bytes, bytes]]
    more: bool = False


class TableView:
    """Follows a table from a thread of its own; any thread may read.

    ``trouble`` is why it does not answer; empty: it does. It takes at most ``most_bytes``, beyond
    which it answers no more.
    """

    def __init__(self, connection: Connection, topic: str, *, most_bytes: int) -> None:
        self._connection = connection
        self._topic = topic
        self._most = most_bytes
        self._lock = threading.Lock()
        self._rows: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []
        """The keys in order, some of which are gone; those of ``_fresh`` are not among them."""
        self._fresh: set[bytes] = set()
        self._gone = 0
        self._size = 0
        self._follower: Follower | None = None
        self._positions: dict[int, int] = {}
        self._changes = Changes()
        self._stop = threading.Event()
        self.trouble = READING
        self._thread = threading.Thread(target=self._run, name=f"table-{topic}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join()

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._rows)

    @property
    def positions(self) -> dict[int, int]:
        """For each partition the next offset: everything before it is here."""
        return self._positions

    @property
    def stale_seconds(self) -> float | None:
        """How old the rows may be; None: not known."""
        return None if self._follower is None else self._follower.stale_seconds

    def subscribe(
        self, listening: Listening, positions: dict[int, int] | None, *, rows: int, size: int
    ) -> Beginning:
        """Tell one who listens what changes from this moment on; return what was before it.

        That is what changed since ``positions``, or the rows where that is too long ago.
        """
        with self._lock:
            self._changes.listen(listening)
            here = positions is not None and all(
                positions.get(number, 0) <= at for number, at in self._positions.items()
            )
            if positions and here and (since := self._changes.since(positions)) is not None:
                return Beginning(positions=positions, since=list(since), rows=[])
            page = self._page(listening.first, listening.wants, listening.beyond, rows, size)
            return Beginning(positions=dict(self._positions), rows=page.rows, more=page.more)

    def unsubscribe(self, listening: Listening) -> None:
        """Tell one nothing more."""
        with self._lock:
            self._changes.leave(listening)

    def get(self, key: bytes) -> bytes | None:
        """Return the row of a key, None where there is none."""
        return self._rows.get(key)

    def cut(
        self, *, keys: Iterable[bytes] | None = None, start: bytes = b"", end: bytes | None = None
    ) -> tuple[dict[int, int], list[bytes]]:
        """Return positions and the rows as they are there: of some keys, or of a range."""
        with self._lock:
            positions = dict(self._positions)
            if keys is not None:
                found = (self._rows.get(key) for key in keys)
                return positions, [value for value in found if value is not None]
            if not start and end is None:
                return positions, list(self._rows.values())

            def beyond(key: bytes) -> bool:
                return end is not None and key >= end

            page = self._page(start, lambda _: True, beyond, len(self._rows) + 1, self._most)
            return positions, [value for _, value in page.rows]

    def page(self, *, prefix: bytes, start: bytes, end: bytes | None, rows: int, size: int) -> Page:
        """Return the rows of keys in their order, from ``start`` on, as many as fit."""

        def beyond(key: bytes) -> bool:
            return not key.startswith(prefix) or (end is not None and key >= end)

        with self._lock:
            return self._page(max(prefix, start), lambda _: True, beyond, rows, size)

    def _page(
        self,
        start: bytes,
        wanted: Callable[[bytes], bool],
        beyond: Callable[[bytes], bool],
        rows: int,
        size: int,
    ) -> Page:
        found: list[tuple[bytes, bytes]] = []
        held, last = 0, None
        for key in self._keys_from(start):
            if beyond(key):
                break
            value = self._rows.get(key)
            if value is None or key == last or not wanted(key):  # gone, or gone for a while
                continue
            last = key
            held += len(key) + len(value)
            if found and (len(found) == rows or held > size):
                return Page(found, more=True)
            found.append((key, value))
        return Page(found, more=False)

    def _keys_from(self, start: bytes) -> Iterator[bytes]:
        if self._fresh:
            # Two runs, each in order: that takes time that grows with the keys, and no faster.
            self._keys += sorted(self._fresh)
            self._keys.sort()
            self._fresh.clear()
        at = bisect.bisect_left(self._keys, start)
        for index in range(at, len(self._keys)):
            yield self._keys[index]

    def _run(self) -> None:
        for _ in attempts(self._stop):
            try:
                self._follow()
            except PenstockError as error:
                self.trouble = error.message
                LOG.info("the table %s is read anew: %s", self._topic, error.message)

    def _follow(self) -> None:
        """Read from the beginning until the end, or until something fails."""
        follower = Follower(self._connection, self._topic)
        try:
            self._reset(follower)
            while not self._stop.is_set():
                records = follower.take(_TAKE_SECONDS)
                self._take(records, follower)
                if self._size > self._most:
                    self._reset(follower)
                    self.trouble = f"the table has more than {self._most} bytes"
                    self._stop.wait()
                elif self.trouble and follower.stale_seconds is not None:
                    with self._lock:
                        self._changes.begin(self._positions)
                    self.trouble = ""
        finally:
            with self._lock:
                self._changes.begin({})
            follower.close()

    def _take(self, records: Sequence[RawRecord], follower: Follower) -> None:
        """Take in what came. Positions move behind the rows: whoever reads them first, is right."""
        reached = dict(follower.positions)
        if records or reached != self._positions:
            with self._lock:
                changes = [self._change(record) for record in records]
                self._tidy()
                self._positions = reached
                if not self.trouble:
                    self._changes.add(changes)

    def _change(self, record: RawRecord) -> Change:
        key, value = record.key() or b"", record.value()
        before = self._rows.get(key)
        self._put(key, value)
        return Change(record.partition() or 0, record.offset() or 0, key, before, value)

    def _reset(self, follower: Follower) -> None:
        with self._lock:
            self._rows, self._keys, self._fresh = {}, [], set()
            self._gone = self._size = 0
            self._follower = follower
            self._positions = {}
            self.trouble = READING

    def _put(self, key: bytes, value: bytes | None) -> None:
        before = self._rows.get(key)
        if value is None:
            if before is not None:
                del self._rows[key]
                self._gone += key not in self._fresh
                self._fresh.discard(key)
                self._size -= len(key) + len(before) + ROW_BYTES
            return
        self._rows[key] = value
        if before is None:
            self._fresh.add(key)
            self._size += len(key) + len(value) + ROW_BYTES
        else:
            self._size += len(value) - len(before)

    def _tidy(self) -> None:
        """Forget the places of keys that are gone, before they are most of them."""
        if self._gone > len(self._rows) + _TIDY_KEYS:
            self._keys = sorted(set(self._rows) - self._fresh)
            self._gone = 0
