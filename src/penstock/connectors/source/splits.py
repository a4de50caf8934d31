"""Which splits of a source are read now, which wait and which have ended; no I/O, no clock."""

from collections.abc import Iterable

__all__ = ["LOOK_SECONDS", "OPEN_SPLITS", "Splits"]

OPEN_SPLITS = 256
"""The most splits that are open at a time; others wait until one of these ends."""
LOOK_SECONDS = 2.0
"""How often a source that grows is asked for its splits."""


class Splits:
    """The splits of one source in one session, in the order in which they were found.

    >>> splits = Splits()
    >>> splits.found(["monday", "tuesday"], at=0.0)
    >>> splits.to_open()
    ['monday', 'tuesday']
    >>> splits.end("monday")
    >>> splits.finished(grows=False), splits.describe()
    (False, '1 of 2 read to the end')
    """

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        self._open: set[str] = set()
        self._ended: set[str] = set()
        self._looked_at: float | None = None

    def look_due(self, at: float, *, grows: bool) -> bool:
        """Return whether the connector is to be asked which splits there are."""
        if self._looked_at is None:
            return True
        return grows and at - self._looked_at >= LOOK_SECONDS

    def found(self, names: Iterable[str], *, at: float) -> None:
        """Take what the connector answered at an instant."""
        self._looked_at = at
        known = self._open | self._ended
        self._waiting.update((name, None) for name in names if name not in known)

    def to_open(self) -> list[str]:
        """Return the splits to be opened now, which count as open from here on."""
        count = OPEN_SPLITS - len(self._open)
        names = list(self._waiting)[:count]
        for name in names:
            del self._waiting[name]
        self._open.update(names)
        return names

    def end(self, name: str) -> None:
        """Take note that a split was read to its end."""
        self._open.discard(name)
        self._ended.add(name)

    def finished(self, *, grows: bool) -> bool:
        """Return whether there is nothing more to come."""
        return self._looked_at is not None and not (grows or self._open or self._waiting)

    def describe(self) -> str:
        """Return how many there are, for people; empty where the source is not divided."""
        total = len(self._open) + len(self._waiting) + len(self._ended)
        return "" if total < 2 else f"{len(self._ended)} of {total} read to the end"  # noqa: PLR2004
