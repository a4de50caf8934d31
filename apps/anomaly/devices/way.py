"""Trouble on the way: lines that come late, twice, in another order, or many at once; pure."""

from __future__ import annotations

import heapq
from random import Random

import msgspec

__all__ = ["Trouble", "Way"]


class Trouble(msgspec.Struct, frozen=True):
    """How much trouble there is; shares are of lines, between 0 and 1."""

    late: float = 0.0
    late_seconds: float = 5.0
    disorder: float = 0.0
    double: float = 0.0
    bursts: float = 0.0
    """This share of all seconds nothing gets through; then everything comes at once."""
    skew_seconds: float = 0.0
    """The clock of a device is off by at most so much."""


class Way:
    """The way of one device's lines to the door."""

    def __init__(self, trouble: Trouble, chance: Random) -> None:
        self._trouble = trouble
        self._chance = chance
        self._waiting: list[tuple[float, int, bytes]] = []
        self._count = 0
        self._closed_until = 0.0
        self.skew = chance.uniform(-trouble.skew_seconds, trouble.skew_seconds)

    def put(self, line: bytes, now: float) -> None:
        """Send a line on its way."""
        trouble, chance = self._trouble, self._chance
        due = now
        if chance.random() < trouble.late:
            due += chance.uniform(0, trouble.late_seconds)
        elif chance.random() < trouble.disorder:
            due += chance.uniform(0, 1)
        for _ in range(2 if chance.random() < trouble.double else 1):
            self._count += 1
            heapq.heappush(self._waiting, (due, self._count, line))

    def arrived(self, now: float) -> bytes:
        """Return the lines that have come to the end of the way."""
        if self._closed_until > now:
            return b""
        if self._trouble.bursts and self._chance.random() < self._trouble.bursts:
            self._closed_until = now + 2.0
        found = []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(heapq.heappop(self._waiting)[2])
        return b"".join(found)
