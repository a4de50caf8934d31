"""The results of live queries that are iterated over: one, or several on one connection."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from penstock.client.following.copied import LiveChange, LiveCopy
from penstock.client.following.stream import LiveStream
from penstock.client.wire import Wire

__all__ = ["LiveResult", "LiveResults"]

_NAME = "live"


class LiveResult(LiveCopy):
    """One query that is followed; iterate over it for its changes.

    ``documents`` is the result after the last change that was given. After a break it connects
    again, with its token; where the gateway does not remember what came since, a whole result is
    given. It gives up after ``ClientLimits.attempts`` failures in a row.
    """

    def __init__(self, wire: Callable[[], Wire], asked: Mapping[str, Any], *, resume: str) -> None:
        super().__init__(resume=resume)
        self._stream = LiveStream(wire, {_NAME: asked}, {_NAME: self})

    async def __aiter__(self) -> AsyncIterator[LiveChange]:
        """Yield the result, and then each change of it, without an end."""
        async with aclosing(self._stream.changes()) as changes:
            async for _, change in changes:
                yield change


class LiveResults(Mapping[str, LiveCopy]):
    """Several queries that are followed on one connection, by names that the caller gives.

    Iterate with ``async for name, change in results.changes()``. What ends one of them ends all.
    """

    def __init__(self, wire: Callable[[], Wire], asked: Mapping[str, Mapping[str, Any]]) -> None:
        self._copies = {name: LiveCopy() for name in asked}
        self._stream = LiveStream(wire, asked, self._copies)

    async def changes(self) -> AsyncIterator[tuple[str, LiveChange]]:
        """Yield each result, and then each change of one of them, without an end."""
        async with aclosing(self._stream.changes()) as changes:
            async for each in changes:
                yield each

    def __getitem__(self, name: str) -> LiveCopy:
        """Return the result of a query."""
        return self._copies[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names of the queries."""
        return iter(self._copies)

    def __len__(self) -> int:
        """Return how many queries there are."""
        return len(self._copies)
