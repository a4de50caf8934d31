"""The two kinds of connectors, told apart by whether the outside can be read again.

What happens once (a socket, a keyboard) is pushed into a :class:`Feed`. What stays (a file) is
pulled from a :class:`Reading`, which can be opened again where the last one ended: that is what
makes it exactly once. A connector of your own implements one of the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import Protocol, runtime_checkable

from penstock.connectors.lines import Line

__all__ = ["Feed", "LiveConnector", "Position", "PositionedConnector", "Reading"]


class Feed(Protocol):
    """Where a live connector puts its lines."""

    @property
    def stop(self) -> Event:
        """Set when the connector is to return."""

    def put(self, line: Line) -> None:
        """Take one line; waits while the log is behind, and so must whoever sends."""

    def settle(self) -> None:
        """Wait until every line put so far is on the log."""

    def tell(self, fact: str, text: str) -> None:
        """Show a fact beside the source's counts: ``"listening on"``, ``"127.0.0.1:9999"``."""

    def complain(self, trouble: str) -> None:
        """Say why lines do not get in, which makes the source degraded; empty: they do."""


@runtime_checkable
class LiveConnector(Protocol):
    """An outside that happens once: what is not taken when it comes is gone."""

    def run(self, feed: Feed) -> None:
        """Put lines into the feed until there are no more, or until ``feed.stop`` is set."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far an outside has been read, and how to know it again. Both fit into 63 bits."""

    at: int
    fingerprint: int


class Reading(Protocol):
    """One pass over an outside, from a position on."""

    @property
    def ended(self) -> bool:
        """Whether there will be no more lines."""

    def position_after(self, line: Line) -> Position:
        """Return where one of the lines ends that were read last, those behind it unused."""

    def read(self) -> Sequence[Line]:
        """Return the next lines, a bounded number; none where there are none yet."""

    def close(self) -> None:
        """Let go of what is open."""


@runtime_checkable
class PositionedConnector(Protocol):
    """An outside that stays: its lines can be read again, from any position."""

    def open(self, position: Position | None) -> Reading:
        """Start reading there; ConfigurationError where the outside is not what was read so far."""
