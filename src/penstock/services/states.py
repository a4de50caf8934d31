"""All states of one task: handed to the function, written to the changelog, restored from it."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from penstock.core.state import Here, StateSpec
from penstock.core.timer import Timers
from penstock.services.cells import MapCells, ValueCells, make_cells
from penstock.services.statecodec import MARKER_KEY
from penstock.services.timerqueue import EVENT_TIME_KEY, TIMER_PREFIXES, TimerQueue

__all__ = ["States"]


class States:
    """The states and timers of one task, in memory; the changelog is what makes them durable.

    Records of states that the service no longer declares are skipped and counted by name in
    ``unknown``.
    """

    def __init__(
        self,
        specs: Iterable[StateSpec],
        *,
        changelog: str,
        clock: Callable[[], datetime],
        timers: TimerQueue | None = None,
    ) -> None:
        self.cells = tuple(make_cells(spec, changelog=changelog, clock=clock) for spec in specs)
        self.timers = timers
        self.unknown: dict[str, int] = {}
        self._expiring = [cells for cells in self.cells if cells.spec.ttl is not None]
        self._by_prefix = {cells.codec.prefix: cells for cells in self.cells}

    def __len__(self) -> int:
        """Return how many values are held."""
        return sum(len(cells.values) for cells in self.cells)

    def named(self, name: str) -> ValueCells | MapCells | None:
        """Return the state of this name, or None."""
        return next((cells for cells in self.cells if cells.spec.name == name), None)

    def handles(self, here: Here) -> dict[str, Any]:
        """Return what the user's code gets for each state, pointing where ``here`` does."""
        return {cells.spec.name: cells.handle(here) for cells in self.cells}

    def timers_handle(self, here: Here) -> Timers | None:
        """Return what the user's code gets for the timers, None where there are none."""
        return None if self.timers is None else Timers(self.timers, here)

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield a changelog record for everything that changed since the last commit."""
        for cells in self.cells:
            prefix = cells.codec.prefix
            for place, value in cells.changes():
                yield prefix + place, value
        if self.timers is not None:
            yield from self.timers.changes()

    def settle(self) -> None:
        """Forget what changed: its changelog records are committed."""
        for cells in self.cells:
            cells.changed.clear()
        if self.timers is not None:
            self.timers.settle()

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Take in one record of the changelog."""
        if key[:1] == b"\x00":
            self._apply_own(key, value)
            return
        name, _, place = key.partition(b"\x00")
        cells = self._by_prefix.get(key[: len(name) + 1])
        if cells is None:
            self._skip(name)
        else:
            cells.apply(place, value)

    def expires_at(self) -> int | None:
        """Return, in microseconds, when something may expire next."""
        found = [at for cells in self._expiring if (at := cells.expires_at()) is not None]
        return min(found, default=None)

    def sweep(self, now: int) -> bool:
        """Forget what has expired; return whether anything had."""
        return sum(cells.sweep(now) for cells in self._expiring) > 0

    def _apply_own(self, key: bytes, value: bytes | None) -> None:
        """Take in what is no state's: timers, the event time, marks."""
        if key == MARKER_KEY:
            return
        kind, _, rest = key[1:].partition(b"\x00")
        time = TIMER_PREFIXES.get(b"\x00%s\x00" % kind)
        if self.timers is None:
            self._skip(kind)
        elif key == EVENT_TIME_KEY:
            self.timers.event_time.restore(int(value or 0))
        elif time is not None:
            self.timers.apply(time, rest, value)
        else:
            self._skip(kind)

    def _skip(self, name: bytes) -> None:
        shown = name.decode(errors="replace")
        self.unknown[shown] = self.unknown.get(shown, 0) + 1
