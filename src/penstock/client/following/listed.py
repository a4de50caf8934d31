"""The result of a live query as a list that keeps itself current."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from penstock.client.following.result import LiveResult
from penstock.errors import PenstockError

__all__ = ["LiveList"]


class LiveList:
    """A result that keeps itself current while the block runs.

    Entering waits for the first result. ``documents`` is the result as of now; whatever ended it is
    raised by the next call.
    """

    def __init__(self, result: LiveResult) -> None:
        self._result = result
        self._documents: list[Any] = []
        self._changed = asyncio.Condition()
        self._count = 0
        self._failed: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def documents(self) -> list[Any]:
        """The result as of now."""
        if self._failed is not None:
            raise self._failed
        return list(self._documents)

    @property
    def stale_seconds(self) -> float | None:
        """How old it may be, as the gateway said last; None: not known."""
        return self._result.stale_seconds

    async def until(self, condition: Callable[[list[Any]], bool]) -> list[Any]:
        """Return the documents as soon as they fulfil a condition."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._failed is not None or condition(list(self._documents))
            )
        return self.documents

    async def __aenter__(self) -> Self:
        """Wait for the first result."""
        self._task = asyncio.create_task(self._follow())
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: self._count or self._failed is not None)
            _ = self.documents  # or why there are none
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Follow it no more."""
        await self._end()

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self) -> None:
        try:
            async for _ in self._result:
                async with self._changed:
                    self._documents = self._result.documents
                    self._count += 1
                    self._changed.notify_all()
        except PenstockError as error:
            async with self._changed:
                self._failed = error
                self._changed.notify_all()
