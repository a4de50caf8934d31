"""An open look-up: what is asked for at the same time goes over the connection together.

While one request is under way, keys gather for the next. A key that several calls ask for is asked
for once. All of it runs in the event loop of the service's task, which rests between batches.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from time import monotonic
from typing import Any, Generic, TypeVar

from penstock.connectors.connector import AWAY
from penstock.connectors.lookup.cache import RowCache
from penstock.connectors.lookup.keys import Key, identity, require_key
from penstock.connectors.lookup.reading import RowReader
from penstock.connectors.lookup.store import RowStore, StoreMaker
from penstock.errors import ConfigurationError, DataError, PenstockError, TransientError

__all__ = ["OpenLookup"]

T = TypeVar("T")

_MOST_WAITING = 10_000
"""How many keys may wait for an answer; one more is refused as if the store were away."""
_CLOSE_SECONDS = 1.0
_SPARED_SECONDS = 1.0


class OpenLookup(Generic[T]):
    """What is asked for rows: ``await customers.get("c1")``. It is used in one event loop."""

    def __init__(
        self,
        connect: StoreMaker,
        *,
        name: str,
        keys: int,
        reader: RowReader[T],
        cache: RowCache,
        timeout: timedelta,
        at_once: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._connect, self._name, self._keys = connect, name, keys
        self._reader, self._cache, self._clock = reader, cache, clock
        self._seconds, self._at_once = timeout.total_seconds(), at_once
        self._store: RowStore | None = None
        self._spared_until = -1.0
        """Until when the store is not asked for rows of which stale ones are kept: it was away."""
        self._waiting: dict[Any, tuple[Key, asyncio.Future[T | None]]] = {}
        """Keys that nobody has asked the store for yet."""
        self._under_way: dict[Any, asyncio.Future[T | None]] = {}
        self._asker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "OpenLookup[T]":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, *key: Any) -> T | None:
        """Return the row of a key, None where there is none, or where a part of the key is None.

        TransientError ``connector.away``: the store did not answer in time. DataError: the values
        are no key, or the row is no record of the type. ConfigurationError: a person must act.
        """
        if any(part is None for part in key):
            return None
        require_key(key, count=self._keys, name=self._name)
        name = identity(key)
        now = self._clock()
        if kept := self._cache.fresh(name, at=now):
            return self._known(kept.row)
        kept = self._cache.stale(name, at=now)
        if kept is not None and now < self._spared_until:
            return self._known(kept.row)  # others have just waited in vain
        try:
            return await asyncio.shield(self._asked(name, key))
        except TransientError:
            if kept is None:
                raise
            return self._known(kept.row)

    async def attempt(self) -> None:
        """Connect, as the first question would."""
        await self._answered([])

    async def close(self) -> None:
        """End what is under way, and close the connection."""
        if self._asker is not None:
            self._asker.cancel()
            with suppress(asyncio.CancelledError):
                await self._asker
        self._fail(self._take_all(), self._away("the look-up was closed"))
        await self._let_go()

    def _known(self, row: Any) -> T | None:
        found: T | None = row
        return found

    def _asked(self, name: Any, key: Key) -> "asyncio.Future[T | None]":
        """Return what will have the row: the same for all who ask for this key."""
        if found := self._under_way.get(name):
            return found
        if waits := self._waiting.get(name):
            return waits[1]
        if len(self._waiting) >= _MOST_WAITING:
            raise self._away(f"{_MOST_WAITING} keys wait for an answer")
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_seen)  # whoever asked may have been cancelled
        self._waiting[name] = key, future
        if self._asker is None or self._asker.done():
            self._asker = asyncio.create_task(self._ask_on(), name=f"look-ups in {self._name}")
        return future

    async def _ask_on(self) -> None:
        """Ask for what has gathered until nothing is left."""
        while self._waiting:
            names = list(islice(self._waiting, self._at_once))
            batch = {name: self._waiting.pop(name) for name in names}
            self._under_way = {name: future for name, (_, future) in batch.items()}
            try:
                await self._ask(batch)
            finally:
                self._under_way = {}

    async def _ask(self, batch: dict[Any, tuple[Key, "asyncio.Future[T | None]"]]) -> None:
        """Ask for some keys; one that the store does not take is found by halves."""
        futures = [future for _, future in batch.values()]
        try:
            keys = [key if self._keys > 1 else key[0] for key, _ in batch.values()]
            rows = await self._answered(keys)
        except DataError as error:
            if len(batch) == 1:
                self._fail(futures, error)
                return
            names = list(batch)
            middle = len(names) // 2
            await self._ask({name: batch[name] for name in names[:middle]})
            await self._ask({name: batch[name] for name in names[middle:]})
        except PenstockError as error:
            self._fail(futures, error)
        except BaseException as error:
            self._fail(futures, self._away(f"{type(error).__name__}: {error}"))
            if not isinstance(error, Exception):
                raise
        else:
            for name, future, row in zip(batch, futures, rows, strict=True):
                self._settle(name, future, row)

    def _settle(self, name: Any, future: "asyncio.Future[T | None]", row: Any) -> None:
        if future.done():
            return
        try:
            if isinstance(row, DataError):
                raise row
            found = None if row is None else self._reader.read(row)
        except DataError as error:
            error.message = f"look-up in {self._name}: {error.message}"
            future.set_exception(error)
            return
        self._cache.put(name, found, at=self._clock())
        future.set_result(found)

    async def _answered(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Return the store's rows for keys; a connection that failed is not used again."""
        try:
            async with asyncio.timeout(self._seconds):
                rows = await self._fetched(keys)
        except DataError:
            raise
        except TimeoutError as error:
            await self._failed()
            raise self._away(f"no answer within {self._seconds:g}s") from error
        except BaseException:
            await self._failed()
            raise
        if len(rows) != len(keys):
            raise ConfigurationError(
                f"look-up in {self._name}: {len(rows)} rows for {len(keys)} keys",
                code="lookup.store",
                hint="fetch returns one row, or None, for each key, in their order",
            )
        return rows

    async def _fetched(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Ask; where a connection has been lost since it was used last, over a new one."""
        if self._store is not None:
            try:
                return await self._store.fetch(keys)
            except TransientError:
                await self._let_go()
        self._store = await self._connect()
        return await self._store.fetch(keys) if keys else ()

    async def _failed(self) -> None:
        self._spared_until = self._clock() + _SPARED_SECONDS
        await self._let_go()

    async def _let_go(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            # What is wrong with a connection that is given up is of no interest any more.
            with suppress(Exception):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await store.close()

    def _take_all(self) -> list["asyncio.Future[T | None]"]:
        left = [future for _, future in self._waiting.values()]
        self._waiting.clear()
        return left

    def _fail(self, futures: Sequence["asyncio.Future[T | None]"], error: PenstockError) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(error)

    def _away(self, text: str) -> TransientError:
        return TransientError(f"look-up in {self._name}: {text}", code=AWAY)


def _seen(future: "asyncio.Future[Any]") -> None:
    """Take an error that nobody waits for any more, so that it is not told as forgotten."""
    if not future.cancelled():
        future.exception()
