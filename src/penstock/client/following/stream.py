"""Queries on one connection, as server-sent events bring them, over breaks of it."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from penstock.client.connection import Request, broken
from penstock.client.following.copied import LiveChange, LiveCopy
from penstock.client.following.listening import events_of, over_breaks
from penstock.client.refusals import read_json
from penstock.client.wire import Wire

__all__ = ["LiveStream"]

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
        changes = over_breaks(self._messages, self._take, retries=self._wire().retries)
        async with aclosing(changes):
            async for change in changes:
                yield change

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
        async with aclosing(events_of(self._wire(), request)) as events:
            async for event in events:
                yield read_json(_MESSAGE, event.data.encode())
