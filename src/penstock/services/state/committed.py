"""A task's committed state, for other threads to read while the task goes on.

A *cut* is the state as one commit left it, with the positions of the inputs that the commit stood
for. It shows no uncommitted write and never half of a commit, however long it is open. The task is
not held up for it: opening a cut and committing exclude each other for the moment that either
takes, and nothing else waits.

In memory the task writes in place. What was committed before is beside it: the first change of a
place since a commit puts aside what was there, and a cut that is open keeps what was put aside
since it was opened. On a disk a cut is an iterator of RocksDB, which shows the moment it was made.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from heapq import merge
from itertools import chain, groupby, islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from penstock.backbone.client.logrecord import Offsets
from penstock.errors import TransientError

if TYPE_CHECKING:
    from penstock.services.state.entries import Entries
    from penstock.services.state.shelf import Shelf

__all__ = ["ABSENT", "SCAN_CHUNK", "Committed", "Cut", "Overlay", "Readable", "WindowValue"]

ABSENT: Any = object()
"""What is held where nothing is."""
SCAN_CHUNK = 256
"""So many places are read at once; between two chunks a cut can be closed."""

_SORTED_AT_ONCE = 10_000
"""So many places are sorted in one call, which lets no other thread in."""

Changes = dict[bytes, Any]
"""For each place that changed since a commit, what that commit had left there."""


class WindowValue(NamedTuple):
    """One window of a key, and its results so far."""

    start: int
    end: int
    """In microseconds since the epoch; of windows by count, the numbers of records."""
    results: Any
    closed: bool


class Overlay:
    """What places held at the last commit, for those that changed since: a part of a state.

    The task alone writes ``changed``, for each place before it changes it.
    """

    def __init__(self) -> None:
        self.changed: Changes = {}
        self.kept: list[list[Changes]] = []
        """For each open cut, what was put aside since it was opened, the oldest first."""

    def settle(self) -> None:
        """Begin anew: everything is committed."""
        if self.kept:
            changed: Changes = {}
            for each in self.kept:
                each.append(changed)
            self.changed = changed
        else:
            self.changed.clear()


class Readable(Protocol):
    """One state of a task, as a cut reads it."""

    changed: Changes
    kept: list[list[Changes]]

    @property
    def prefix(self) -> bytes:
        """Return what its places have before them on a disk."""

    def held(self) -> Mapping[bytes, Any]:
        """Return places to what is held there now, for state in memory."""

    def under(self, head: bytes) -> Iterable[bytes]:
        """Return the places that hold something now and begin so, for state in memory."""

    def load(self, place: bytes, value: bytes) -> Any:
        """Return what is held for a value that is on a disk."""

    def places(self, key: bytes) -> tuple[bytes, bool]:
        """Return the place of a key; True: its places begin so, and there may be several."""

    def key_of(self, place: bytes) -> bytes | None:
        """Return the key that a place belongs to; None: it belongs to none."""

    def gather(self, found: Iterable[tuple[bytes, Any]], now_at: datetime) -> Any:
        """Return the value of a key from what its places hold; ABSENT: it has none."""


class Committed:
    """The committed state of one task: its states by name, and how far they are.

    Any thread may call :meth:`cut`; the others are for the task.
    """

    def __init__(
        self,
        states: Mapping[str, Readable],
        *,
        clock: Callable[[], datetime],
        shelf: "Shelf | None" = None,
    ) -> None:
        self.states = states
        self._clock = clock
        self._shelf = shelf
        self._lock = threading.Lock()
        self._positions: Offsets | None = None
        self._cuts: set[Cut] = set()

    @property
    def positions(self) -> Offsets | None:
        """Return how far the last commit was in each input; None: the task does not run here."""
        return self._positions

    def settle(self, positions: Offsets, settle: Callable[[], None]) -> None:
        """Let a commit become visible, all of it at once, with where it left the inputs."""
        with self._lock:
            settle()
            self._positions = dict(positions)

    def cut(self) -> "Cut":
        """Return the state as the last commit left it, to be closed after use.

        TransientError ``state.moved`` where the task does not run here, or not yet.
        """
        with self._lock:
            if self._positions is None:
                raise _moved()
            entries = None if self._shelf is None else self._shelf.entries()
            cut = Cut(self, self._positions, clock=self._clock, entries=entries)
            self._cuts.add(cut)
            return cut

    def forget(self, cut: "Cut") -> None:
        """Put nothing aside any more for a cut that is closed."""
        with self._lock:
            self._cuts.discard(cut)
            for name, kept in cut.kept.items():
                state = self.states[name]
                state.kept = [each for each in state.kept if each is not kept]

    def close(self) -> None:
        """End: the task runs here no more. Cuts that are open answer no more."""
        with self._lock:
            self._positions = None
            cuts = list(self._cuts)
        for cut in cuts:
            cut.close()


class Cut:
    """A task's state as one commit left it. Close it soon: meanwhile the task keeps what changes.

    Several threads may use one. A value that has outlived its time to live is not shown.
    TransientError ``state.moved``: the task was given up meanwhile.
    """

    def __init__(
        self,
        committed: Committed,
        positions: Offsets,
        *,
        clock: Callable[[], datetime],
        entries: "Entries | None",
    ) -> None:
        self.positions = positions
        """For each input the offset of the first record that this state knows nothing of."""
        self.kept: dict[str, list[Changes]] = {}
        self._committed = committed
        self._clock = clock
        self._entries = entries
        self._lock = threading.Lock()
        self._closed = False
        if entries is None:
            for name, state in committed.states.items():
                kept = self.kept[name] = [state.changed]
                state.kept.append(kept)

    def get(self, state: str, key: bytes, default: Any = None) -> Any:
        """Return the value of a key: a value, a list, a map as a dict, or its windows."""
        readable = self._state(state)
        place, several = readable.places(key)
        with self._open():
            if several:
                found = list(self._under(state, readable, place))
            else:
                held = self._at(state, readable, place)
                found = [] if held is ABSENT else [(place, held)]
        value = readable.gather(found, self._clock()) if found else ABSENT
        return default if value is ABSENT else value

    def scan(
        self,
        state: str,
        *,
        prefix: bytes = b"",
        start: bytes = b"",
        end: bytes | None = None,
    ) -> Iterator[tuple[bytes, Any]]:
        """Yield keys with their values: those that begin with ``prefix``, from ``start`` on.

        ``end`` and what is behind it is not among them. Keys come in the order of their bytes,
        those of maps by their length first. Stop asking when you have enough: it reads in chunks.
        """
        readable = self._state(state)

        def wanted(place: bytes) -> bool:
            key = readable.key_of(place)
            return (
                key is not None
                and key.startswith(prefix)
                and key >= start
                and (end is None or key < end)
            )

        first, several = readable.places(max(prefix, start))
        last = None if several or end is None else readable.places(end)[0]
        if self._entries is None:
            places = self._in_memory(state, readable, wanted)
        else:
            places = self._on_disk(self._entries, readable, wanted, b"" if several else first, last)
        for key, found in groupby(places, lambda row: readable.key_of(row[0])):
            value = readable.gather([*found], self._clock())
            if key is not None and value is not ABSENT:
                yield key, value

    def length_first(self, state: str) -> bool:
        """Return whether a scan gives the keys of a state by their length first."""
        return self._state(state).places(b"")[1]

    @property
    def closed(self) -> bool:
        """Whether it answers no more."""
        return self._closed

    def close(self) -> None:
        """Let go; what is asked afterwards is refused."""
        with self._lock:
            if self._closed:
                return
            self._closed, self._entries = True, None
        self._committed.forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _state(self, name: str) -> Readable:
        try:
            return self._committed.states[name]
        except KeyError:
            known = ", ".join(self._committed.states) or "none"
            raise LookupError(f"there is no state {name!r}; the task has {known}") from None

    def _at(self, name: str, readable: Readable, place: bytes) -> Any:
        """Return what the commit had left at a place."""
        if self._entries is not None:
            value = self._entries.get(readable.prefix + place)
            return ABSENT if value is None else readable.load(place, value)
        # In this order: a place is put aside before it is changed.
        held = readable.held().get(place, ABSENT)
        for changed in self.kept[name]:
            if (before := changed.get(place, self)) is not self:
                return before
        return held

    def _under(self, name: str, readable: Readable, head: bytes) -> Iterator[tuple[bytes, Any]]:
        """Yield what the commit had left at places that begin so, in their order."""
        if self._entries is not None:
            cut = len(readable.prefix)
            for key, value in self._entries.scan(readable.prefix + head):
                yield key[cut:], readable.load(key[cut:], value)
            return
        gone = (place for changed in list(self.kept[name]) for place in list(changed))
        known = {*list(readable.under(head)), *(each for each in gone if each.startswith(head))}
        for place in sorted(known):
            if (held := self._at(name, readable, place)) is not ABSENT:
                yield place, held

    def _in_memory(
        self, name: str, readable: Readable, wanted: Callable[[bytes], bool]
    ) -> Iterator[tuple[bytes, Any]]:
        """Yield places and what the commit had left there, in their order, in chunks."""
        with self._open():
            # One call each, during which no other thread runs: milliseconds for a million places.
            known = list(readable.held())
            gone = [list(changed) for changed in list(self.kept[name])]
        listed = [place for place in chain(known, *gone) if wanted(place)]
        places = _ordered(listed)
        while chunk := list(islice(places, SCAN_CHUNK)):
            with self._open():
                rows = [(place, self._at(name, readable, place)) for place in chunk]
            yield from (row for row in rows if row[1] is not ABSENT)

    def _on_disk(
        self,
        entries: "Entries",
        readable: Readable,
        wanted: Callable[[bytes], bool],
        after: bytes,
        last: bytes | None,
    ) -> Iterator[tuple[bytes, Any]]:
        """Yield places and what the commit had left there, in their order, in chunks."""
        while True:
            with self._open():
                rows = entries.chunk(readable.prefix, after, SCAN_CHUNK)
            for place, value in rows:
                if wanted(place):
                    yield place, readable.load(place, value)
            if len(rows) < SCAN_CHUNK or (last is not None and rows[-1][0] >= last):
                return
            after = rows[-1][0] + b"\x00"

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Keep the cut open for a moment; refuse where it is closed."""
        with self._lock:
            if self._closed:
                raise _moved()
            yield


def _ordered(listed: Sequence[bytes]) -> Iterator[bytes]:
    """Yield places in order, each once; sorted in pieces, which let other threads in between."""
    starts = range(0, len(listed), _SORTED_AT_ONCE)
    pieces = [sorted(listed[start : start + _SORTED_AT_ONCE]) for start in starts]
    for place, _ in groupby(merge(*pieces)):
        yield place


def _moved() -> TransientError:
    return TransientError(
        "the task does not run here now",
        code="state.moved",
        hint="ask again: another worker has it, or is about to",
    )
