"""Queries on one connection, as server-sent events bring them, over breaks of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from penstock.client.connection import Request, broken
from penstock.client.events import EventReader, TooLargeEventError
from penstock.client.following.copied import LiveChange, LiveCopy
from penstock.client.refusals import REPEATABLE, error_of, read_json, retry_after
from penstock.client.wire import Wire
from penstock.errors import TransientError

__all__ = ["LiveStream"]

_OK = 200
_SILENCE_SECONDS = 45.0
"""A gateway says every 5 seconds how things stand (``serving.heartbeat``)."""
_MESSAGE = msgspec.json.Decoder(dict[str, Any])


class LiveStream:
    """Queries by their names, and the copies of their results.

    After a break it connects again, with the token of each. It gives up after
    ``ClientLimits.attempts`` failures in a row.
    """

    def __init__(
        self,
        wire: Callable[[], Wire],
        asked: Mapping[str, Mapping[str, Any]],
        copies: Mapping[str, LiveCopy],
    ) -> None:
        self._wire = wire
        self._asked = asked
        self._copies = copies

    async def changes(self) -> AsyncGenerator[tuple[str, LiveChange], None]:
        """Yield what changes, with the name of the query, without an end."""
        failures = 0
        retries = self._wire().retries
        while True:
            wait = 0.0
            try:
                async with aclosing(self._messages()) as messages:
                    async for message in messages:
                        failures = 0
                        for name, change in self._take(message):
                            yield name, change
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

    def _take(self, message: dict[str, Any]) -> list[tuple[str, LiveChange]]:
        if message.get("type") == "up-to-date":
            for each in self._copies.values():
                each.stale_seconds = message.get("stale_seconds")
            return []
        name = message.get("id", "")
        copy = self._copies.get(name)
        if copy is None:  # it concerns the connection
            LiveCopy().take(message)
            return []
        try:
            change = copy.take(message)
        except LookupError as error:
            copy.forget()
            raise broken(f"messages are missing: {error}") from error
        return [] if change is None else [(name, change)]

    async def _messages(self) -> AsyncGenerator[dict[str, Any], None]:
        asked = [
            {**given, "id": name} | ({"resume": token} if (token := copy.token) else {})
            for (name, given), copy in zip(self._asked.items(), self._copies.values(), strict=True)
        ]
        request = Request(
            method="POST",
            target="/v1/live/events",
            headers={"Accept": "text/event-stream", "Content-Type": "application/json"},
            body=msgspec.json.encode({"subscribe": asked}),
            silence_seconds=_SILENCE_SECONDS,
        )
        wire = self._wire()
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
                    try:
                        events = reader.feed(piece)
                    except TooLargeEventError as error:
                        raise broken(str(error)) from error
                    for event in events:
                        yield read_json(_MESSAGE, event.data.encode())


class _RefusedError(Exception):
    """A gateway does not let one follow now."""

    def __init__(self, error: TransientError, wait: float) -> None:
        super().__init__(error.message)
        self.error = error
        self.wait = wait
