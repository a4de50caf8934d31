"""All states of one task: handed to the function, written to the changelog, restored from it."""

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.core.state import Cells, State, StateSpec
from penstock.services.statecodec import MARKER_KEY, StateCodec
from penstock.services.timerqueue import EVENT_TIME_KEY, TIMER_PREFIXES, TimerQueue

__all__ = ["Slot", "States"]


_ABSENT: Any = object()


class Slot:
    """One state: its values, the handle the function gets, and its codec."""

    __slots__ = ("before", "cells", "codec", "spec", "state")

    def __init__(self, spec: StateSpec, *, changelog: str) -> None:
        self.spec = spec
        self.cells: Cells[Any] = Cells()
        self.state: State[Any] = State(self.cells)
        self.codec = StateCodec(spec, changelog=changelog)
        self.before: Any = _ABSENT


class States:
    """The states of one task, in memory; the changelog is what makes them durable.

    Records of states that the service no longer declares are skipped and counted by name in
    ``unknown``.
    """

    def __init__(
        self, specs: Iterable[StateSpec], *, changelog: str, timers: TimerQueue | None = None
    ) -> None:
        self.slots = tuple(Slot(spec, changelog=changelog) for spec in specs)
        self.timers = timers
        self.unknown: dict[str, int] = {}
        # Bound once: these run for every record.
        self._hot = [(slot.state.at, slot.cells.values.get, slot) for slot in self.slots]
        self._by_prefix = {slot.codec.prefix: slot for slot in self.slots}

    def __len__(self) -> int:
        """Return how many values are held."""
        return sum(len(slot.cells.values) for slot in self.slots)

    def slot(self, name: str) -> Slot | None:
        """Return the state of this name, or None."""
        return next((slot for slot in self.slots if slot.spec.name == name), None)

    def point(self, key: bytes) -> None:
        """Point every state at a key and remember its values, before a call of the function."""
        for at, get, slot in self._hot:
            at(key)
            slot.before = get(key, _ABSENT)
        if self.timers is not None:
            self.timers.point(key)

    def verify(self, key: bytes) -> None:
        """Check what the call left; TypeError for a value that could not be restored."""
        for _, get, slot in self._hot:
            value = get(key, _ABSENT)
            if value is slot.before or value is _ABSENT:
                continue
            if refusal := slot.codec.refuses(value):
                raise TypeError(refusal)

    def take_back(self, key: bytes) -> None:
        """Give every state the value it had before the call."""
        for slot in self.slots:
            if slot.before is _ABSENT:
                slot.cells.values.pop(key, None)
            else:
                slot.cells.values[key] = slot.before
        if self.timers is not None:
            self.timers.take_back()

    def changes(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield a changelog record for every key that changed since the last commit."""
        for slot in self.slots:
            values, prefix, encode = slot.cells.values, slot.codec.prefix, slot.codec.encode
            for key in slot.cells.changed:
                yield prefix + key, encode(values[key]) if key in values else None
        if self.timers is not None:
            yield from self.timers.changes()

    def settle(self) -> None:
        """Forget which keys changed: their changelog records are committed."""
        for slot in self.slots:
            slot.cells.changed.clear()
        if self.timers is not None:
            self.timers.settle()

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Take in one record of the changelog."""
        if key[:1] == b"\x00":
            self._apply_own(key, value)
            return
        name, _, record_key = key.partition(b"\x00")
        slot = self._by_prefix.get(key[: len(name) + 1])
        if slot is None:
            self._skip(name)
        elif value is None:
            slot.cells.values.pop(record_key, None)
        else:
            slot.cells.values[record_key] = slot.codec.decode(value, record_key=record_key)

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
