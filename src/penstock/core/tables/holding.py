"""Results that are held back, so that of many changes of a group only the last one comes out."""

from typing import Any

from penstock.core.keyed.wakes import Wakes
from penstock.core.panes.store import Store
from penstock.core.panes.times import END

__all__ = ["Holding"]


class Holding:
    """The groups whose results are held back, the one that has been held longest first.

    One is let out when event time is so far past its first change since it was last let out, or
    when more than so many are held.
    """

    def __init__(self, store: Store, *, held_for: int | None, most: int | None) -> None:
        self._held_for = held_for
        self._most = most
        self._since: dict[bytes, int] = {}
        """By group: when it is let out."""
        self._wakes = Wakes(store, tag=b"h.")

    def hold(self, key: bytes, time: int) -> None:
        """Hold the result of a group that has changed."""
        if key in self._since:
            return
        until = END if self._held_for is None else time + self._held_for
        self._since[key] = until
        if self._held_for is not None:
            self._wakes.add(until, key)

    def released(self, newest: int) -> list[bytes]:
        """Return the groups that are let out."""
        found = []
        if newest == END:
            found, self._since = list(self._since), {}
            return found
        for until, key in self._wakes.due(newest):
            if self._since.get(key) == until:
                del self._since[key]
                found.append(key)
        while self._most is not None and len(self._since) > self._most:
            key = next(iter(self._since))
            del self._since[key]
            found.append(key)
        return found

    def sweep(self, mark: int) -> None:
        """Do nothing: what is held is let out with the next change."""

    def flush(self) -> None:
        """Write what changed."""
        self._wakes.flush()

    def trim(self, most: int) -> None:
        """Do nothing: what is held is a key and a time."""

    def slots(self) -> Any:
        """Return what `begin` needs to go on from here."""
        return list(self._since.items()), self._wakes.kept()

    def begin(self, slots: Any, mark: int) -> None:  # noqa: ARG002 - the moments say it
        """Go on from where another one was."""
        since, wakes = slots
        self._since = dict(since)
        self._wakes.begin(wakes)
