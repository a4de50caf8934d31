"""The records of a bucket of windows as the state of one task, and how other threads read them."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.core.panes.bucket import GROUP_PREFIX, windows_of
from penstock.services.state.committed import ABSENT, Readable, WindowValue
from penstock.services.state.machine import MachineState

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["PaneState"]


class PaneState(MachineState):
    """The records of a bucket; a cut reads the windows of each group.

    ``results`` gives the results of a window from what it holds.
    """

    prefix = b"panes\x00"
    parted = False  # a cut reads the record of a group as it is

    def __init__(
        self, shelf: "Shelf | None" = None, *, results: Callable[[Any], Any] = lambda held: held
    ) -> None:
        super().__init__(shelf)
        self._results = results

    @property
    def readable(self) -> Mapping[str, Readable]:
        """Return the one state there is, for a cut to read: the windows of each group."""
        return {"windows": self}

    def under(self, head: bytes) -> tuple[bytes, ...]:
        """Refuse: a group has one record."""
        raise LookupError(head)

    def load(self, place: bytes, value: bytes) -> bytes:  # noqa: ARG002 - as it is on the shelf
        """Return a record of the shelf."""
        return value

    def places(self, key: bytes) -> tuple[bytes, bool]:
        """Return where the record of a group is."""
        return GROUP_PREFIX + key, False

    def key_of(self, place: bytes) -> bytes | None:
        """Return the group of a record; None: it is the bucket's own."""
        return place[len(GROUP_PREFIX) :] if place.startswith(GROUP_PREFIX) else None

    def gather(self, found: Iterable[tuple[bytes, Any]], now_at: datetime) -> Any:  # noqa: ARG002
        """Return the windows of a group; ABSENT: it has none."""
        windows = [
            WindowValue(*window, self._results(state.held), state.closed)
            for _, record in found
            for window, state in windows_of(record).items()
        ]
        return sorted(windows, key=lambda each: (each.start, each.end)) or ABSENT
