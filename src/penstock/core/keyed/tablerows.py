"""The rows of a table by key: the latest of each, or also those before, for a span of time."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING, NEVER
from penstock.core.panes.waiting import Waiting

__all__ = ["TableRows", "Version"]

_SWEEPS = 4
"""Versions are forgotten after at most a fourth of the history more."""

_MOST_ABSENT = 20_000
"""So many keys without a row are remembered, so that the store is not asked for them again."""

Version = tuple[int, Any]
"""The time of a row, and the row; None: it was deleted then."""


class _Entry:
    """The versions of one key, oldest first."""

    __slots__ = ("listed", "rows", "times")

    def __init__(self, versions: Sequence[Version] = (), listed: int = NEVER) -> None:
        self.times = [time for time, _ in versions]
        self.rows = [row for _, row in versions]
        self.listed = listed


class TableRows:
    """The rows of one table. With a ``history``, an older row does not replace a newer one.

    ``versions``: also rows that were replaced are kept, as long as ``history`` says, for
    :meth:`as_of`. A deletion is kept as long, so that an older row which comes after it changes
    nothing.
    """

    def __init__(
        self,
        store: Store,
        record: type[Any],
        *,
        tag: bytes,
        history: int | None = None,
        versions: bool = False,
    ) -> None:
        self._store = store
        self._tag = tag
        self._history = history
        self._versions = versions and history is not None
        self._entries: dict[bytes, _Entry] = {}
        self._dirty: set[bytes] = set()
        self._absent: set[bytes] = set()
        """Keys that were asked for, and are not in the store."""
        self._waiting = Waiting(tag.decode() + "w", store)
        self._encode = msgspec.msgpack.Encoder().encode
        kept: Any = tuple[int, list[tuple[int, record | None]]]  # type: ignore[valid-type]
        self._decode = msgspec.msgpack.Decoder(kept).decode

    def latest(self, key: bytes) -> Version | None:
        """Return the latest version of a key; its row is None where it was deleted."""
        entry = self._entries.get(key) or self._load(key)
        return (entry.times[-1], entry.rows[-1]) if entry.rows else None

    def row(self, key: bytes) -> Any | None:
        """Return the row of a key as it is now."""
        entry = self._entries.get(key) or self._load(key)
        return entry.rows[-1] if entry.rows else None

    def as_of(self, key: bytes, time: int, mark: int) -> Any | None:
        """Return the row that held at a time; None where that is too long before the mark."""
        entry = self._entries.get(key) or self._load(key)
        at = bisect_right(entry.times, time)
        too_old = 0 if self._history is None else bisect_right(entry.times, mark - self._history)
        return entry.rows[at - 1] if at and at >= too_old else None

    def accepts(self, key: bytes, time: int) -> bool:
        """Return whether a row of this time would be the latest of its key."""
        if self._history is None:
            return True
        entry = self._entries.get(key) or self._load(key)
        return not entry.times or time >= entry.times[-1]

    def put(self, key: bytes, row: Any | None, time: int, mark: int = BEGINNING) -> None:
        """Take in a row, or None for its deletion."""
        entry = self._entries.get(key) or self._load(key)
        self._entries[key] = entry
        self._absent.discard(key)
        self._dirty.add(key)
        if self._history is None:
            entry.times = [] if row is None else [time]
            entry.rows = [] if row is None else [row]
            return
        if self._versions:
            self._insert(entry, row, time)
            self._purge(entry, mark)
        else:
            entry.times, entry.rows = [time], [row]
        if entry.listed == NEVER and (len(entry.rows) > 1 or row is None):
            entry.listed = self._sweeps(entry.times[-1])
            self._waiting.add(entry.listed, key)

    def sweep(self, mark: int) -> None:
        """Forget versions that are too old to be asked for."""
        if self._history is None or not self._waiting.is_due(mark):
            return
        while keys := self._waiting.due(mark):
            for key in keys:
                entry = self._entries.get(key) or self._load(key)
                if entry.listed > mark:
                    continue
                entry.listed = NEVER
                self._dirty.add(key)
                self._purge(entry, mark)
                if len(entry.rows) > 1 or (entry.rows and entry.rows[-1] is None):
                    entry.listed = self._sweeps(max(entry.times[-1], mark - self._history))
                    self._waiting.add(entry.listed, key)

    def flush(self) -> None:
        """Write what changed."""
        for key in self._dirty:
            entry = self._entries[key]
            if entry.rows:
                versions = list(zip(entry.times, entry.rows, strict=True))
                self._store.put(self._tag + key, self._encode((entry.listed, versions)))
            else:
                self._store.delete(self._tag + key)
                del self._entries[key]
        self._dirty.clear()
        self._waiting.flush()

    def trim(self, most: int) -> None:
        """Forget what is in the store, where more than so many keys are in memory."""
        if len(self._entries) > most:
            self._entries = {key: self._entries[key] for key in self._dirty}

    def slots(self) -> dict[int, tuple[int, int]]:
        """Return what :meth:`begin` needs to go on from here."""
        return self._waiting.slots()

    def begin(self, slots: Mapping[int, Sequence[int]], mark: int) -> None:
        """Go on from where another one was."""
        self._waiting.load(slots)
        self._waiting.now = mark

    def _sweeps(self, time: int) -> int:
        """Return when to forget what is older, that of many keys at once."""
        history = self._history or 0
        grain = max(1, history // _SWEEPS)
        return ((time + history) // grain + 1) * grain

    def _insert(self, entry: _Entry, row: Any | None, time: int) -> None:
        times = entry.times
        if not times or time > times[-1]:
            times.append(time)
            entry.rows.append(row)
            return
        at = bisect_right(times, time)
        if at and times[at - 1] == time:
            entry.rows[at - 1] = row
        else:
            times.insert(at, time)
            entry.rows.insert(at, row)

    def _purge(self, entry: _Entry, mark: int) -> None:
        """Keep what may be asked for: versions since the history began, and the one before."""
        if self._history is None or not entry.times:
            return
        past = bisect_right(entry.times, mark - self._history)
        if past > 1:
            del entry.times[: past - 1], entry.rows[: past - 1]
            past = 1
        if past and entry.rows[0] is None:
            del entry.times[0], entry.rows[0]

    def _load(self, key: bytes) -> _Entry:
        if key in self._absent:
            return _Entry()
        found = self._store.get(self._tag + key)
        if found is None:
            if len(self._absent) >= _MOST_ABSENT:
                self._absent.clear()
            self._absent.add(key)
            return _Entry()
        listed, versions = self._decode(found)
        entry = self._entries[key] = _Entry(versions, listed)
        return entry
