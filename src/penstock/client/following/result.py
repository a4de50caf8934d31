"""The result of one live query, as server-sent events bring it, over breaks of the connection."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.client.connection import Request, broken
from penstock.client.events import EventReader, TooLargeEventError
from penstock.client.refusals import REPEATABLE, error_of, read_json, retry_after
from penstock.client.wire import Wire
from penstock.core.feeds.replica import Replica
from penstock.core.grid.documents import readable
from penstock.errors import TransientError

__all__ = ["LiveChange", "LiveEvent", "LiveResult"]

_OK = 200
_SILENCE_SECONDS = 45.0
"""A gateway says every 5 seconds how things stand (``serving.heartbeat``)."""
_NAME = "live"
_MESSAGE = msgspec.json.Decoder(dict[str, Any])
_TAKEN = frozenset(("begin", "first", "ready", "changes", "results", "resumed", "must-refetch"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEvent:
    """What became of one document."""

    what: Literal["add", "change", "changeIndex", "remove"]
    document: Any
    """As it is now; of ``remove`` its ``_id`` alone."""
    operation: str = ""
    """What was done to it: insert, update or delete; none, if another one was written."""
    index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveChange:
    """What is new: a whole result, or the events since the last change."""

    kind: Literal["result", "changes"]
    events: tuple[LiveEvent, ...] = ()
    squashed: bool = False
    """Whether the events are the difference between two results, not of one write."""


class LiveResult:
    """One query that is followed; iterate over it for its changes.

    ``documents`` is the result after the last change that was given. After a break it connects
    again, with its token; where the gateway does not remember what came since, a whole result is
    given. It gives up after ``ClientLimits.attempts`` failures in a row.
    """

    def __init__(self, wire: Callable[[], Wire], asked: Mapping[str, Any], *, resume: str) -> None:
        self._wire = wire
        self._asked = asked
        self._copy = Replica()
        self._copy.token = resume
        self.stale_seconds: float | None = None
        """How old the result may be, as the gateway said last; None: not known."""

    @property
    def documents(self) -> list[Any]:
        """The result: a list in its order, or the members of a set."""
        return [readable(each) for each in self._copy.documents]

    @property
    def token(self) -> str:
        """Where it stands, for another client to ``resume`` from; empty: nowhere yet."""
        return self._copy.token

    async def __aiter__(self) -> AsyncIterator[LiveChange]:
        """Yield the result, and then each change of it, without an end."""
        failures = 0
        retries = self._wire().retries
        while True:
            wait = 0.0
            try:
                async with aclosing(self._messages()) as messages:
                    async for message in messages:
                        failures = 0
                        if (change := self._take(message)) is not None:
                            yield change
                failed: TransientError = broken("the gateway ended it")
            except _RefusedError as error:
                failed, wait = error.error, error.wait
            except LookupError as error:
                self._copy.token = ""
                failed = broken(f"messages are missing: {error}")
            except TransientError as error:
                failed = error
            failures += 1
            found = retries.wait(failures, passed=0.0, asked=wait)
            if found is None:
                raise failed
            await asyncio.sleep(found)

    def _take(self, message: dict[str, Any]) -> LiveChange | None:
        kind = message.get("type")
        if kind == "error":
            self._fail(message.get("problem") or {})
        elif kind == "up-to-date":
            self.stale_seconds = message.get("stale_seconds")
        elif kind in _TAKEN and self._copy.take(message):
            if kind != "changes":
                return LiveChange(kind="result")
            events = tuple(
                LiveEvent(
                    what=each["what"],
                    document=readable(each["document"]),
                    operation=each.get("operation", ""),
                    index=each.get("index"),
                )
                for each in message["events"]
            )
            squashed = message.get("squashed", False)
            return LiveChange(kind="changes", events=events, squashed=squashed)
        return None

    def _fail(self, problem: Mapping[str, Any]) -> None:
        error = error_of(int(problem.get("status", 0)), msgspec.json.encode(problem))
        if error.code == "live.behind":
            self._copy.token = ""
            raise broken("the client read slower than the result changes")
        raise error

    async def _messages(self) -> AsyncGenerator[dict[str, Any], None]:
        asked = {**self._asked, "id": _NAME}
        if self._copy.token:
            asked["resume"] = self._copy.token
        request = Request(
            method="POST",
            target="/v1/live/events",
            headers={"Accept": "text/event-stream", "Content-Type": "application/json"},
            body=msgspec.json.encode({"subscribe": [asked]}),
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
