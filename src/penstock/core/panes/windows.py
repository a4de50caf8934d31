"""How elements are put into windows. A window is ``(start, end)``, its end not included."""

from dataclasses import dataclass
from typing import TypeAlias

from penstock.core.panes.times import BEGINNING, END

__all__ = [
    "GLOBAL",
    "CountWindows",
    "FixedWindows",
    "GlobalWindow",
    "SessionWindows",
    "SlidingWindows",
    "Window",
    "WindowKind",
    "joined",
]

Window: TypeAlias = tuple[int, int]

GLOBAL: Window = (BEGINNING, END)


@dataclass(frozen=True, slots=True)
class FixedWindows:
    """Windows of one size, side by side; ``offset`` shifts all of them."""

    size: int
    offset: int = 0

    def of(self, time: int) -> tuple[Window, ...]:
        """Return the one window that a time is in."""
        start = time - (time - self.offset) % self.size
        return ((start, start + self.size),)


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows of one size, one beginning every period; an element is in several."""

    size: int
    period: int
    offset: int = 0

    def of(self, time: int) -> tuple[Window, ...]:
        """Return every window that a time is in, the latest first."""
        last = time - (time - self.offset) % self.period
        return tuple(
            (start, start + self.size) for start in range(last, time - self.size, -self.period)
        )


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Windows that grow and merge while elements come less than a gap apart."""

    gap: int

    def of(self, time: int) -> tuple[Window, ...]:
        """Return the window an element has before it is merged with its neighbours."""
        return ((time, time + self.gap),)


@dataclass(frozen=True, slots=True)
class GlobalWindow:
    """One window for all time; it ends with the input."""

    def of(self, _time: int) -> tuple[Window, ...]:
        """Return the only window."""
        return (GLOBAL,)


@dataclass(frozen=True, slots=True)
class CountWindows:
    """Windows of so many elements each, per key, in order of arrival; numbered by element."""

    size: int

    def of_ordinal(self, ordinal: int) -> Window:
        """Return the window of a key's n-th element."""
        start = ordinal - ordinal % self.size
        return (start, start + self.size)


WindowKind: TypeAlias = FixedWindows | SlidingWindows | SessionWindows | GlobalWindow | CountWindows


def joined(windows: list[Window]) -> list[list[Window]]:
    """Group windows that overlap, directly or through others; touching is not overlapping.

    >>> joined([(1, 11), (30, 40), (7, 17)])
    [[(1, 11), (7, 17)], [(30, 40)]]
    """
    groups: list[list[Window]] = []
    reach = BEGINNING
    for window in sorted(set(windows)):
        if groups and window[0] < reach:
            groups[-1].append(window)
        else:
            groups.append([window])
            reach = window[1]
        reach = max(reach, window[1])
    return groups
