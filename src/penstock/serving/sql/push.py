"""What changes in an answer, to whoever watches it: server-sent events, or WebSocket messages."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.serving.http.conversation import Conversation
from penstock.serving.http.problems import Problem
from penstock.serving.relations.watching import Watched, Watcher

__all__ = ["EVENTS", "Event", "Shape", "WatchStream", "hold_conversation"]

EVENTS = "text/event-stream"
_BEAT_SECONDS = 15.0
"""How long nothing is sent before a comment says that the gateway is there."""
_RETRY = b"retry: 1000\n\n"

Shape = Callable[[tuple[Any, ...]], dict[str, Any]]
"""From a row to what is told of it: ``value``, and perhaps ``key``."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that is told; ``number`` is its id, to go on behind it."""

    kind: str
    data: dict[str, Any]
    number: str = ""


async def events(
    watched: Watched, watcher: Watcher, shape: Shape
) -> AsyncGenerator[list[Event], None]:
    """Yield what is told, some events at a time, for as long as it goes on; none: nothing came."""
    first = [Event("row", shape(row)) for row in watcher.rows]
    told = {"resumed": True} if watcher.resumed else {}
    number = watcher.number - len(watcher.missed)
    first.append(Event("ready", told | watcher.about, watched.mark(number)))
    changes, about = watcher.missed, watcher.about
    while True:
        found = [
            Event("change", _change(shape, each.changed), watched.mark(each.number))
            for each in changes
        ]
        if changes:
            found.append(Event("at", about))
        elif about and not first:
            found.append(Event("waiting", about))
        yield first + found
        first = []
        coming = await watcher.next(seconds=_BEAT_SECONDS)
        if coming is None:
            break
        changes, about = coming
    yield list(_last(watcher))


def _last(watcher: Watcher) -> Iterable[Event]:
    if watcher.behind:
        yield Event("behind", {})
    if watcher.error is not None:
        yield Event("ended", {"code": watcher.error.code, "detail": watcher.error.message})


def _change(shape: Shape, changed: Any) -> dict[str, Any]:
    """Return a change as its key, if it has one, and what was before and after."""
    before = {} if changed.before is None else shape(changed.before)
    after = {} if changed.after is None else shape(changed.after)
    key = {name: value for name, value in (before | after).items() if name != "value"}
    return {**key, "before": before.get("value"), "value": after.get("value")}


class WatchStream(Response):
    """The answer to one who watches, as server-sent events, for as long as they do."""

    def __init__(
        self,
        watched: Watched,
        watcher: Watcher,
        shape: Shape,
        *,
        stop: asyncio.Event,
        refused: Coroutine[Any, Any, Problem],
    ) -> None:
        self._refused = refused
        self._watched = watched
        self._watcher = watcher
        self._shape = shape
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        del scope
        headers = [(b"content-type", EVENTS.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            telling = self._tell(send), _gone(receive), self._stop.wait()
            await _until_first(*telling, _raising(self._refused))
        except Problem as problem:
            told = Event("ended", {"code": problem.code, "detail": problem.detail})
            await _send(send, _encoded(told))
        self._watched.leave(self._watcher)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        await _send(send, _RETRY)
        async with aclosing(events(self._watched, self._watcher, self._shape)) as several:
            async for found in several:
                await _send(send, b"".join(map(_encoded, found)) or b": here\n\n")


async def hold_conversation(
    conversation: Conversation,
    watched: Watched,
    watcher: Watcher,
    shape: Shape,
    *,
    refused: Coroutine[Any, Any, Problem],
) -> None:
    """Tell the same as messages of a WebSocket; what the client says is of no interest."""

    async def tell() -> None:
        async with aclosing(events(watched, watcher, shape)) as several:
            async for found in several:
                for event in found:
                    number = {"id": event.number} if event.number else {}
                    message = {"event": event.kind, **number, "data": event.data}
                    text = msgspec.json.encode(message)
                    while not conversation.tell(text):
                        await conversation.drained()

    async def hear() -> None:
        while await conversation.hear() is not None:
            pass

    try:
        await _until_first(tell(), hear(), _raising(refused))
    finally:
        watched.leave(watcher)


async def _raising(refused: Coroutine[Any, Any, Problem]) -> None:
    raise await refused


async def _until_first(*several: Any) -> None:
    """Do several things until the first has ended; raise what it raises."""
    tasks = [asyncio.ensure_future(each) for each in several]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, Exception):
                await task


def _encoded(event: Event) -> bytes:
    """Return one event; JSON has no line ends, so its data is one line."""
    head = f"id: {event.number}\n" if event.number else ""
    return f"{head}event: {event.kind}\ndata: ".encode() + msgspec.json.encode(event.data) + b"\n\n"


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
