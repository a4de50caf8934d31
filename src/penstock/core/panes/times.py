"""Event time and clock as whole numbers, with a beginning and an end that sums never pass."""

from typing import NamedTuple

__all__ = ["BEGINNING", "END", "NEVER", "At", "plus"]

BEGINNING = -(2**62)
END = 2**62
NEVER = END + 1
"""Later than the end: what is due then never is."""


class At(NamedTuple):
    """A moment: the event-time watermark, and the clock of the machine."""

    watermark: int = BEGINNING
    clock: int = 0


def plus(time: int, span: int) -> int:
    """Add a span to a time; a finite sum stops at :data:`END`, an endless one is :data:`NEVER`.

    >>> plus(END, 10) == END, plus(0, END) == NEVER
    (True, True)
    """
    return NEVER if span >= END else min(END, time + span)
