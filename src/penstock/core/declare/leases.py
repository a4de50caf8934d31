"""The service that keeps the queries of live queries open, as long as somebody follows them."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from zlib import crc32

from penstock.core.graph.data import Output, Stream, send
from penstock.core.graph.state import Context, State
from penstock.core.graph.timer import Timer, Timers
from penstock.core.grid.livequeries import cell_keys
from penstock.core.grid.messages import Asked, Placed

__all__ = ["leases"]

_EXPIRES = "lease"


def leases(rows: tuple[Stream[Placed], ...], columns: int, lease: timedelta) -> type[Any]:
    """Return the service that opens queries in their cells, and closes those nobody renews.

    ``rows`` takes what the cells of each row are told. The life of a query is the offset of what
    opened it, so that each is later than the one before.
    """
    cells = cell_keys(columns)

    def told(
        to: Iterable[str], name: str, life: int, what: str, query: str = ""
    ) -> list[Output[Placed]]:
        row = rows[crc32(name.encode()) % len(rows)]
        return [
            send(row, Placed(cell=cell, id=name, life=life, what=what, query=query)) for cell in to
        ]

    class Leases:
        def process(
            self, asked: Asked, context: Context, life: State[int], timers: Timers
        ) -> Iterable[Output[Placed]]:
            """Open a query, or let it live on; whoever wants its result gets it as a whole."""
            opened = life.get()
            timers.set(_EXPIRES, after=lease, time="processing", payload=asked.id)
            if opened is None:
                opened = context.coordinates.offset
                life.set(opened)
                return told(cells, asked.id, opened, "open", asked.query)
            return told(cells[:1], asked.id, opened, "again") if asked.again else ()

        def on_timer(self, timer: Timer, life: State[int]) -> Iterable[Output[Placed]]:
            """Close a query that nobody renews."""
            opened = life.get()
            life.delete()
            name = str(timer.payload)
            return () if opened is None else told(cells, name, opened, "close")

    return Leases
