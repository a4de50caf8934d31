"""What reaches a bucket in one moment from one source, and how it travels there.

An engine that combines elements before it sends them to the bucket of their key packs them here;
one that does not (a service, the test driver) makes the same value in memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.core.panes.machine import Element, Partial
from penstock.core.panes.packing import decode, encode

__all__ = ["Ahead", "Arrivals", "pack_arrivals", "unpack_arrivals"]

Ahead = tuple[bytes, int, Any]
"""Key, event time and origin of an element whose time lies too far ahead of the clock."""


@dataclass(slots=True, kw_only=True)
class Arrivals:
    """The clock, how far one source has come, and its elements by key: as they are or combined."""

    clock: int
    source: str = ""
    position: int = 0
    """Where these stand among the arrivals of their source."""
    newest: int | None = None
    """The newest event time of the source that was believed; None: it showed none."""
    elements: dict[bytes, list[Element]] = field(default_factory=dict)
    partials: dict[bytes, list[Partial]] = field(default_factory=dict)
    ahead: list[Ahead] = field(default_factory=list)


def pack_arrivals(arrivals: Arrivals) -> bytes:
    """Return arrivals as bytes.

    Values and accumulators must be plain data; the times and origins of partials arrays of whole
    numbers of 64 bits. They travel as such, and cost nothing until somebody looks at them.
    """
    partials = {
        key: [(row.window, row.held, bytes(row.times), bytes(row.origins)) for row in rows]
        for key, rows in arrivals.partials.items()
    }
    return encode(
        (
            arrivals.clock,
            arrivals.source,
            arrivals.position,
            arrivals.newest,
            arrivals.elements,
            partials,
            arrivals.ahead,
        )
    )


def unpack_arrivals(packed: bytes) -> Arrivals:
    """Return what :func:`pack_arrivals` packed."""
    clock, source, position, newest, elements, partials, ahead = decode(packed)
    return Arrivals(
        clock=clock,
        source=source,
        position=position,
        newest=newest,
        elements={key: [tuple(each) for each in rows] for key, rows in elements.items()},
        partials={key: [_partial(row, source) for row in rows] for key, rows in partials.items()},
        ahead=[tuple(each) for each in ahead],
    )


def _partial(row: Iterable[Any], source: str) -> Partial:
    window, held, times, origins = row
    return Partial(
        tuple(window), held, memoryview(times).cast("q"), memoryview(origins).cast("q"), source
    )
