"""Scans that a worker holds open between two pages: all of them show what one commit left.

What is held costs memory (what changes meanwhile is put aside), so their number is bounded, and
whoever does not ask for more in time has to begin anew.
"""

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

from penstock.errors import TransientError
from penstock.services.state.committed import Cut

__all__ = ["MOST_SCANS", "SCAN_SECONDS", "Held", "Scans"]

MOST_SCANS = 64
"""So many scans are held at once; one more, and the oldest is let go."""
SCAN_SECONDS = 5.0
"""How long a scan is held after its last page."""


@dataclass(slots=True, eq=False)
class Held:
    """A scan between two pages: the state as a commit left it, and the rows still to be told."""

    task: str
    cut: Cut
    rows: Iterator[tuple[bytes, bytes]]
    used_at: float = 0.0


class Scans:
    """The scans that are held; any thread may call."""

    def __init__(self, *, most: int = MOST_SCANS, seconds: float = SCAN_SECONDS) -> None:
        self._most = most
        self._seconds = seconds
        self._held: dict[int, Held] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many are held."""
        return len(self._held)

    def hold(self, scan: Held, *, number: int = 0) -> int:
        """Keep a scan for its next page; return its number."""
        scan.used_at = monotonic()
        with self._lock:
            number = number or next(self._numbers)
            self._held[number] = scan
            excess = [self._held.pop(min(self._held))] if len(self._held) > self._most else []
        _close(excess)
        return number

    def take(self, number: int, *, task: str) -> Held:
        """Take a scan out, to go on with it; TransientError ``scan.gone``: it is not held."""
        with self._lock:
            found = self._held.get(number)
            if found is not None and found.task == task:
                return self._held.pop(number)
        raise TransientError("the scan is held no more", code="scan.gone", hint="ask again")

    def sweep(self) -> None:
        """Let go of what nobody has asked for in time."""
        oldest = monotonic() - self._seconds
        with self._lock:
            gone = [number for number, scan in self._held.items() if scan.used_at < oldest]
            found = [self._held.pop(number) for number in gone]
        _close(found)

    def close(self) -> None:
        """Let go of everything."""
        with self._lock:
            found = list(self._held.values())
            self._held.clear()
        _close(found)


def _close(scans: list[Any]) -> None:
    for scan in scans:
        scan.cut.close()
