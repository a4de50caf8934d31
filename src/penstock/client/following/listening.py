"""Server-sent events of a request that stays open, over breaks of the connection."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import TypeVar

from penstock.client.connection import Request, broken
from penstock.client.events import Event, EventReader, TooLargeEventError
from penstock.client.refusals import REPEATABLE, error_of, retry_after
from penstock.client.retrying import Retries
from penstock.client.wire import Wire
from penstock.errors import TransientError

__all__ = ["events_of", "over_breaks"]

T = TypeVar("T")
E = TypeVar("E")

_OK = 200


async def over_breaks(
    events: Callable[[], AsyncGenerator[E, None]],
    take: Callable[[E], Iterable[T]],
    *,
    retries: Retries,
) -> AsyncGenerator[T, None]:
    """Yield what ``take`` makes of the events of all connections; ``events`` opens the next one.

    After ``ClientLimits.attempts`` failures in a row the last of them is raised.
    """
    failures = 0
    while True:
        wait = 0.0
        try:
            async with aclosing(events()) as coming:
                async for event in coming:
                    failures = 0
                    for each in take(event):
                        yield each
            failed: TransientError = broken("the gateway ended it")
        except _RefusedError as error:
            failed, wait = error.error, error.wait
        except TransientError as error:
            failed = error
        failures += 1
        found = retries.wait(failures, passed=0.0, asked=wait)
        if found is None:
            raise failed
        await asyncio.sleep(found)


async def events_of(wire: Wire, request: Request) -> AsyncGenerator[Event, None]:
    """Yield the events of one connection."""
    most = wire.limits.answer_bytes
    async with wire.open(request) as answer:
        if answer.status != _OK:
            error = error_of(answer.status, await answer.whole(most=most))
            if answer.status in REPEATABLE and isinstance(error, TransientError):
                raise _RefusedError(error, retry_after(answer.headers))
            raise error
        reader = EventReader(most=most)
        async with aclosing(answer.pieces()) as pieces:
            async for piece in pieces:
                for event in _fed(reader, piece):
                    yield event


def _fed(reader: EventReader, piece: bytes) -> list[Event]:
    try:
        return reader.feed(piece)
    except TooLargeEventError as error:
        raise broken(str(error)) from error


class _RefusedError(Exception):
    """A gateway does not let one listen now."""

    def __init__(self, error: TransientError, wait: float) -> None:
        super().__init__(error.message)
        self.error = error
        self.wait = wait
