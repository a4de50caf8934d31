"""``GET /v1/tables/{name}/changes``: rows, and then what changes in them, as server-sent events."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.core.graph.data import Table
from penstock.serving.http.asked import text_of_key
from penstock.serving.http.problems import Problem
from penstock.serving.tables.changes import Change, Listening, mark
from penstock.serving.tables.view import TableView

__all__ = ["EVENTS", "ChangeStream", "Subscribed"]

EVENTS = "text/event-stream"
_BEAT_SECONDS = 15.0
"""How long nothing is sent before a comment says that the gateway is there."""
_RETRY_MILLISECONDS = 1000

Decode = Callable[[bytes], Any]


class Subscribed:
    """A place among those who listen to a table, with what they are told first.

    Either the changes since ``positions`` (``resumed``), or the rows as they are.
    """

    def __init__(
        self,
        view: TableView,
        *,
        prefix: bytes,
        key: bytes | None,
        positions: dict[int, int] | None,
        rows: int,
        size: int,
    ) -> None:
        self.listening = Listening(prefix=prefix, key=key)
        self.view = view
        begun = view.subscribe(self.listening, positions, rows=rows, size=size)
        self.positions = begun.positions
        self.resumed = begun.since is not None
        self.changes = [each for each in begun.since or () if self.listening.wants(each.key)]
        self.rows = begun.rows
        if begun.more:
            view.unsubscribe(self.listening)
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "changes.too-many",
                "too many rows are asked for",
                allowed=f"a key, or a prefix with at most {rows} rows",
            )

    def end(self) -> None:
        """Leave."""
        self.view.unsubscribe(self.listening)


class ChangeStream(Response):
    """The answer to one who listens, for as long as they do."""

    def __init__(
        self,
        table: Table[Any],
        subscribed: Subscribed,
        *,
        decode: Decode,
        stop: asyncio.Event,
        refused: Coroutine[Any, Any, Problem],
    ) -> None:
        self._refused = refused
        self._table = table
        self._subscribed = subscribed
        self._decode = decode
        self._stop = stop
        self._positions = dict(subscribed.positions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        del scope
        headers = [(b"content-type", EVENTS.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        leaving = [asyncio.create_task(_gone(receive)), asyncio.create_task(self._stop.wait())]
        telling = asyncio.create_task(self._tell(send))
        refused = asyncio.create_task(self._refused)
        tasks = [telling, refused, *leaving]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if telling.done():
                await telling
        finally:
            self._subscribed.end()
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError, Exception):
                    await task
        if refused.done() and not refused.cancelled():
            problem = refused.result()
            await _send(send, _event("ended", {"code": problem.code, "detail": problem.detail}))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        subscribed = self._subscribed
        first = b"retry: %d\n\n" % _RETRY_MILLISECONDS
        if not subscribed.resumed:
            rows = [self._row(key, value) for key, value in subscribed.rows]
            first += b"".join(_event("row", row) for row in rows)
        ready = {"resumed": True} if subscribed.resumed else {}
        first += _event("ready", ready, mark(self._positions))
        await _send(send, first + self._events(subscribed.changes))
        while (changes := await subscribed.listening.next(seconds=_BEAT_SECONDS)) is not None:
            await _send(send, self._events(changes) or b": here\n\n")
        if subscribed.listening.behind:
            await _send(send, _event("behind", {}))

    def _events(self, changes: Iterable[Change]) -> bytes:
        """Return changes as events, each with the positions that it leads to."""
        found = []
        for change in changes:
            reached = max(self._positions.get(change.partition, 0), change.offset + 1)
            self._positions[change.partition] = reached
            document = {
                "key": text_of_key(change.key),
                "before": None if change.before is None else self._decode(change.before),
                "value": None if change.after is None else self._decode(change.after),
            }
            found.append(_event("change", document, mark(self._positions)))
        return b"".join(found)

    def _row(self, key: bytes, value: bytes) -> dict[str, Any]:
        return {"key": text_of_key(key), "value": self._decode(value)}


def _event(kind: str, document: dict[str, Any], number: str = "") -> bytes:
    """Return one event; JSON has no line ends, so its data is one line."""
    head = f"id: {number}\n" if number else ""
    return f"{head}event: {kind}\ndata: ".encode() + msgspec.json.encode(document) + b"\n\n"


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
