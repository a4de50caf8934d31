"""Lets threads that answer questions in sooner, while there are questions.

A thread that has work waits for the interpreter until another one has had it for the switch
interval, 5 ms by default, and several times for one question. While questions come, the interval
is shorter.
"""

import sys
import threading

__all__ = ["QUICK_SECONDS", "Prompt"]

QUICK_SECONDS = 0.0005
"""The switch interval while questions are answered."""


class Prompt:
    """The switch interval of this process: short for as long as anybody holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holding = 0
        self._usual = 0.0

    def hold(self) -> None:
        """Begin to need short turns."""
        with self._lock:
            if not self._holding:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, QUICK_SECONDS))
            self._holding += 1

    def release(self) -> None:
        """Need them no more; the last one restores what was before."""
        with self._lock:
            self._holding -= 1
            if not self._holding:
                sys.setswitchinterval(self._usual)
