"""All states of one task: handed to the function, written to the changelog, restored from it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.core.graph.state import CallScope, StateSpec
from penstock.core.graph.timer import Timers
from penstock.services.state.cells import ValueCells
from penstock.services.state.codec import MARKER_KEY
from penstock.services.state.committed import Readable
from penstock.services.state.layout import Layout
from penstock.services.state.mapcells import MapCells, make_cells
from penstock.services.state.notes import LAYOUT_KEY, NOTE_KEYS, Notes
from penstock.services.state.saving import Saving
from penstock.services.state.timing.expiries import ShelvedExpiries
from penstock.services.state.timing.queue import EVENT_TIME_KEY, TimerQueue, time_of

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf
    from penstock.services.state.timing.shelved import ShelvedTimers

__all__ = ["StateCopy", "States"]


class States:
    """The states and timers of one task; the changelog is what makes them durable.

    The values are in memory, or on a ``shelf``; so are timers, which were made with it.

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
        shelf: "Shelf | None" = None,
        rows: Mapping[str, Any] | None = None,
    ) -> None:
        self._rows = rows or {}
        self.cells = tuple(
            make_cells(spec, changelog=changelog, clock=clock, shelf=shelf) for spec in specs
        )
        self.timers = timers
        self.shelf = shelf
        self.notes = Notes()
        self._layout = Layout((cells.spec for cells in self.cells), changelog=changelog)
        self._tables = {cells.spec.table: cells for cells in self.cells if cells.spec.table}
        self._logged = [cells for cells in self.cells if not cells.spec.table]
        self.unknown: dict[str, int] = {}
        self._expiring = [cells for cells in self.cells if cells.spec.ttl is not None]
        self._saving = None
        if shelf is not None:
            listed = [cells.expiries for cells in self._expiring]
            on_shelf = [each for each in listed if isinstance(each, ShelvedExpiries)]
            self._saving = Saving(shelf, expiries=on_shelf, timers=_shelved(timers))
        self._by_prefix = {cells.codec.prefix: cells for cells in self.cells}

    def __len__(self) -> int:
        """Return how many values are held."""
        if self.shelf is not None:
            return max(0, len(self.shelf) - (0 if self.timers is None else len(self.timers)))
        return sum(len(cells.values) for cells in self.cells)

    def named(self, name: str) -> ValueCells | MapCells | None:
        """Return the state of this name, or None."""
        return next((cells for cells in self.cells if cells.spec.name == name), None)

    @property
    def readable(self) -> Mapping[str, Readable]:
        """Return the states by name, for a cut to read."""
        return {cells.spec.name: cells for cells in self.cells}

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the topics of tables that states are restored from, rather than the changelog."""
        return tuple(self._tables)

    def handles(self, here: CallScope) -> dict[str, Any]:
        """Return what the user's code gets for each state, pointing where ``here`` does.

        The rows of broadcast tables are among it: they point nowhere.
        """
        return {cells.spec.name: cells.handle(here) for cells in self.cells} | dict(self._rows)

    def timers_handle(self, here: CallScope) -> Timers | None:
        """Return what the user's code gets for the timers, None where there are none."""
        return None if self.timers is None else Timers(self.timers, here)

    def changes(self) -> Iterable[tuple[bytes, bytes | None]]:
        """Return a changelog record for everything that changed since the last commit."""
        if self._saving is None:
            return self._changes()
        records = self._saving.commit(self._changes())
        for cells in self._tables.values():  # their own topics have them already
            prefix = cells.codec.prefix
            self._saving.also((prefix + place, value) for place, value in cells.changes())
        return records

    def settle(self) -> None:
        """Forget what changed: its changelog records are committed.

        TransientError where the shelf could not be written: it must not be used any more.
        """
        for cells in self.cells:
            cells.settle()
        if self.timers is not None:
            self.timers.settle()
        self.notes.settle()
        self._save()

    def snapshot(self, positions: Mapping[str, int]) -> None:
        """Hear where logs end before the next commit: what the shelf has by then."""
        if self._saving is not None:
            self._saving.reach(positions)

    def resume(self) -> Mapping[str, int]:
        """Take what must be in memory from the shelf; return where each log is to be read on."""
        if self.shelf is None or not self.shelf.positions:
            return {}
        for key in (*NOTE_KEYS, EVENT_TIME_KEY):
            if (value := self.shelf.get(key)) is not None:
                self._apply_own(key, value)
        return self.shelf.positions

    def taking(self, table: str) -> Callable[[bytes, bytes | None], None]:
        """Return what takes in the records of a table, for the state that it is restored to."""
        prefix, apply = self._tables[table].codec.prefix, self.apply
        return lambda key, value: apply(prefix + key, value)

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Take in one record of the changelog."""
        if key[:1] == b"\x00":
            if self._apply_own(key, value) and self._saving is not None:
                self._saving.add(key, value)
            return
        name, _, place = key.partition(b"\x00")
        cells = self._by_prefix.get(key[: len(name) + 1])
        if cells is None:
            self._skip(name)
        elif self._saving is None:
            cells.apply(place, value)
        else:
            # Read and written anew: so it can be read, and has an expiry if it is to have one.
            self._saving.add(key, None if value is None else cells.dump(cells.admit(place, value)))

    def begin(self) -> None:
        """Hear that all of the changelog was taken in."""
        if self.cells:
            self.notes.put(LAYOUT_KEY, self._layout.dump())

    def restored(self, positions: Mapping[str, int]) -> None:
        """Hear that everything before an offset of each log was taken in."""
        self.snapshot(positions)
        self._save()

    def expires_at(self) -> int | None:
        """Return, in microseconds, when something may expire next."""
        found = [at for cells in self._expiring if (at := cells.expires_at()) is not None]
        return min(found, default=None)

    def sweep(self, now: int) -> bool:
        """Forget what has expired; return whether anything had."""
        return sum(cells.sweep(now) for cells in self._expiring) > 0

    def _changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        for cells in self._logged:
            prefix = cells.codec.prefix
            for place, value in cells.changes():
                yield prefix + place, value
        if self.timers is not None:
            yield from self.timers.changes()
        yield from self.notes.changes()

    def _save(self) -> None:
        """Write what is committed to the shelf."""
        if self._saving is not None:
            self._saving.save()
            for cells in self.cells:
                cells.values.trim()
            if self.timers is not None:
                self.timers.store.trim()

    def _apply_own(self, key: bytes, value: bytes | None) -> bool:
        """Take in what is no state's: timers, the event time, notes. Return whether it was."""
        if key == MARKER_KEY:
            return False
        if self.notes.apply(key, value):
            if key == LAYOUT_KEY and value is not None:
                self._layout.load(value)
            return True
        if self.timers is not None and key == EVENT_TIME_KEY:
            self.timers.event_time.load(value or b"0")
        elif self.timers is not None and (time := time_of(key)) is not None:
            self.timers.apply(time, key, value)
        else:
            self._skip(key[1:].partition(b"\x00")[0])
            return False
        return True

    def _skip(self, name: bytes) -> None:
        shown = name.decode(errors="replace")
        self.unknown[shown] = self.unknown.get(shown, 0) + 1


class StateCopy(States):
    """The states of a task that another worker has, on their way to a shelf.

    Values are read as they will be when the task is taken over: what cannot be is refused now.
    Event time is only passed on, and timers stand there in their order; they are of no use before.
    """

    def _apply_own(self, key: bytes, value: bytes | None) -> bool:
        if self.timers is not None and time_of(key) is not None:
            return super()._apply_own(key, value)
        if not self.notes.apply(key, value):
            return key != MARKER_KEY
        return super()._apply_own(key, value)


def _shelved(timers: TimerQueue | None) -> "ShelvedTimers | None":
    """Return the timers that are on a shelf; None: there are none."""
    if timers is None:
        return None
    from penstock.services.state.timing.shelved import ShelvedTimers

    return timers.store if isinstance(timers.store, ShelvedTimers) else None
