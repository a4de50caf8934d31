"""A machine in which nothing waits: each arrival gives all that it ever will at once."""

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.core.operators.operator import Arrival, MachineOutput, Refused
from penstock.core.panes.packing import decode, encode
from penstock.core.panes.store import Store
from penstock.core.panes.times import BEGINNING
from penstock.errors import DataError

__all__ = ["Kept", "SteadyMachine"]

_HEAD = b"h"


class Kept(Protocol):
    """Something that a machine keeps in its store."""

    def flush(self) -> None:
        """Write what changed."""

    def trim(self, most: int) -> None:
        """Forget what is in the store, where more than so much is in memory."""

    def sweep(self, mark: int) -> None:
        """Forget what is too old to be asked for, by the newest event time."""

    def slots(self) -> Any:
        """Return what `begin` needs to go on from here, as plain data."""

    def begin(self, slots: Any, mark: int) -> None:
        """Go on from where another one was."""


class SteadyMachine:
    """Handles arrivals one by one; whoever derives from it writes ``handle``.

    What it keeps is swept by the newest event time that was seen, and written by ``flush``.
    """

    pending = False
    watermark = BEGINNING

    def __init__(self, store: Store, kept: Sequence[Kept]) -> None:
        self._store = store
        self._kept = kept
        self._newest = BEGINNING
        if (head := store.get(_HEAD)) is not None:
            self._newest, slots = decode(head)
            for each, found in zip(kept, slots, strict=True):
                each.begin(found, self._newest)

    @property
    def newest(self) -> int | None:
        """The newest event time that was ever seen."""
        return self._newest if self._newest > BEGINNING else None

    def handle(self, arrival: Arrival, given: MachineOutput) -> None:
        """Take one arrival; a DataError refuses it."""
        raise NotImplementedError

    def take(
        self,
        arrivals: Sequence[Arrival],
        *,
        clock: int,  # noqa: ARG002 - nothing waits for it
        limit: int | None = None,  # noqa: ARG002 - nothing is due later
    ) -> MachineOutput:
        """Take what came in one moment."""
        given = MachineOutput()
        for arrival in arrivals:
            self._newest = max(self._newest, arrival.time)
            try:
                self.handle(arrival, given)
            except DataError as error:
                given.refused.append(Refused(arrival, error))
        for each in self._kept:
            each.sweep(self._newest)
        given.newest = self.newest
        return given

    def more(self, limit: int | None = None) -> MachineOutput:  # noqa: ARG002 - nothing is due later
        """Return nothing."""
        return MachineOutput(newest=self.newest)

    def advance(
        self,
        *,
        clock: int,  # noqa: ARG002 - nothing waits for it
        event_time: int | None = None,  # noqa: ARG002
        limit: int | None = None,
    ) -> MachineOutput:
        """Return nothing."""
        return self.more(limit)

    def finish(self) -> MachineOutput:
        """Return nothing: nothing waits."""
        return self.more()

    def wakes(self) -> int | None:
        """Return None: nothing waits."""
        return None

    def flush(self) -> None:
        """Write what changed to the store."""
        for each in self._kept:
            each.flush()
        self._store.put(_HEAD, encode((self._newest, [each.slots() for each in self._kept])))

    def trim(self, most: int) -> None:
        """Forget what is in the store, where more than so much is in memory."""
        for each in self._kept:
            each.trim(most)
