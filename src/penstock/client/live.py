"""Live queries: a result, then each change of it; and lists that keep themselves current."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from penstock.client.asking import Asking, Loop, SyncAsking
from penstock.client.following.copied import LiveChange, LiveCopy
from penstock.client.following.listed import LiveList
from penstock.client.following.result import LiveResult, LiveResults
from penstock.core.grid.documents import encode_document
from penstock.core.grid.livequeries import LiveQueries
from penstock.core.live.written.builder import FilterOf

__all__ = ["Live", "SyncLive", "SyncLiveList", "SyncLiveResult", "SyncLiveResults"]

Asked = Mapping[str, Any] | str | FilterOf | None
"""A query; a text or what was built of fields is its filter."""


class Live(Asking):
    """The requests that follow live queries."""

    def live(
        self,
        live: LiveQueries | str = "",
        query: Asked = None,
        *,
        squash: str = "",
        resume: str = "",
    ) -> LiveResult:
        """Follow a query: iterate over what is returned.

        Args:
            live: The live queries, or their name; empty: the only ones of the gateway.
            query: ``filter``, ``sort``, ``offset``, ``limit`` and ``fields``; a text is a filter.
            squash: Collect changes for so long, and tell the last state of each document.
            resume: The ``token`` of an earlier result of the same query.
        """
        return LiveResult(lambda: self._wire, _asked(live, query, squash), resume=resume)

    def live_results(
        self, live: LiveQueries | str, queries: Mapping[str, Asked], *, squash: str = ""
    ) -> LiveResults:
        """Follow several queries on one connection; see ``live``.

        ``queries`` gives each a name of 1 to 64 characters. At most 1,000 go on a connection.
        """
        asked = {name: _asked(live, query, squash) for name, query in queries.items()}
        return LiveResults(lambda: self._wire, asked)

    def live_list(
        self, live: LiveQueries | str = "", query: Asked = None, *, squash: str = ""
    ) -> LiveList:
        """Return a result that keeps itself current within ``async with``; see ``live``."""
        return LiveList(self.live(live, query, squash=squash))


class SyncLiveResult:
    """The same as ``LiveResult``, for callers without an event loop."""

    def __init__(self, loop: Loop, result: LiveResult) -> None:
        self._looping = loop
        self._result = result

    @property
    def documents(self) -> list[Any]:
        """The result after the last change that was given."""
        return self._result.documents

    @property
    def token(self) -> str:
        """Where it stands."""
        return self._result.token

    @property
    def stale_seconds(self) -> float | None:
        """How old it may be."""
        return self._result.stale_seconds

    def __iter__(self) -> Iterator[LiveChange]:
        """Yield the result, and then each change of it."""
        found: Generator[LiveChange, None, None] = self._looping.each(_all_of(self._result))
        return found


class SyncLiveResults(Mapping[str, LiveCopy]):
    """The same as ``LiveResults``, for callers without an event loop."""

    def __init__(self, loop: Loop, results: LiveResults) -> None:
        self._looping = loop
        self._results = results

    def changes(self) -> Iterator[tuple[str, LiveChange]]:
        """Yield each result, and then each change of one of them."""
        found: Generator[tuple[str, LiveChange], None, None] = self._looping.each(
            _changes_of(self._results)
        )
        return found

    def __getitem__(self, name: str) -> LiveCopy:
        """Return the result of a query."""
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names of the queries."""
        return iter(self._results)

    def __len__(self) -> int:
        """Return how many queries there are."""
        return len(self._results)


class SyncLiveList:
    """The same as ``LiveList``, for callers without an event loop."""

    def __init__(self, loop: Loop, make: Callable[[], LiveList]) -> None:
        self._looping = loop
        self._make = make
        self._list: LiveList | None = None

    @property
    def documents(self) -> list[Any]:
        """The result as of now."""
        return self._opened.documents

    def until(
        self, condition: Callable[[list[Any]], bool], *, seconds: float | None = None
    ) -> list[Any]:
        """Return the documents as soon as they fulfil a condition; TimeoutError."""

        async def wait() -> list[Any]:
            async with asyncio.timeout(seconds):
                return await self._opened.until(condition)

        return self._looping.run(wait())

    def __enter__(self) -> Self:
        """Wait for the first result."""

        async def enter() -> LiveList:
            return await self._make().__aenter__()

        self._list = self._looping.run(enter())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Follow it no more."""
        self._looping.run(self._opened.__aexit__(kind, error, trace))

    @property
    def _opened(self) -> LiveList:
        if self._list is None:
            raise TypeError("use it with `with`")
        return self._list


class SyncLive(SyncAsking):
    """The same, for callers without an event loop."""

    _live: Live

    def live(
        self,
        live: LiveQueries | str = "",
        query: Asked = None,
        *,
        squash: str = "",
        resume: str = "",
    ) -> SyncLiveResult:
        """See ``Client.live``."""
        result = self._live.live(live, query, squash=squash, resume=resume)
        return SyncLiveResult(self._loop, result)

    def live_results(
        self, live: LiveQueries | str, queries: Mapping[str, Asked], *, squash: str = ""
    ) -> SyncLiveResults:
        """See ``Client.live_results``."""
        results = self._live.live_results(live, queries, squash=squash)
        return SyncLiveResults(self._loop, results)

    def live_list(
        self, live: LiveQueries | str = "", query: Asked = None, *, squash: str = ""
    ) -> SyncLiveList:
        """See ``Client.live_list``."""
        return SyncLiveList(self._loop, lambda: self._live.live_list(live, query, squash=squash))


async def _all_of(result: LiveResult) -> AsyncGenerator[LiveChange, None]:
    async for change in result:
        yield change


async def _changes_of(results: LiveResults) -> AsyncGenerator[tuple[str, LiveChange], None]:
    async for each in results.changes():
        yield each


def _asked(live: LiveQueries | str, query: Asked, squash: str) -> dict[str, Any]:
    asked: dict[str, Any] = {"query": msgspec.Raw(_query_text(query).encode())}
    if name := live if isinstance(live, str) else live.name:
        asked["live"] = name
    if squash:
        asked["squash"] = squash
    return asked


def _query_text(query: Asked) -> str:
    if query is None:
        return "{}"
    given: Mapping[str, Any] = query if isinstance(query, Mapping) else {"filter": query}
    written = given.get("filter")
    if isinstance(written, FilterOf):
        given = {**given, "filter": written.document}
    return encode_document(dict(given))
