"""What changes in a table, a state or an answer, as it changes; over breaks, each change once."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar, overload
from urllib.parse import quote, urlencode

import msgspec

from penstock.client.answers import RowChange
from penstock.client.asking import Asking, SyncAsking
from penstock.client.connection import Request
from penstock.client.events import Event
from penstock.client.following.listening import events_of, over_breaks
from penstock.client.naming import key_text, read_value, state_of
from penstock.client.refusals import read_json
from penstock.core.graph.data import Table
from penstock.core.graph.parts import Service
from penstock.core.records.schema import Schema

__all__ = ["Changes", "SyncChanges"]

T = TypeVar("T")

_SILENCE_SECONDS = 45.0
"""A gateway says every 15 seconds that it is there."""
_NULL = b"null"


class _Told(msgspec.Struct):
    key: str = ""
    value: msgspec.Raw = msgspec.Raw(_NULL)
    before: msgspec.Raw = msgspec.Raw(_NULL)
    resumed: bool = False


_TOLD = msgspec.json.Decoder(_Told)


class Changes(Asking):
    """The requests that stay open and are told of changes."""

    async def changes(
        self, table: Table[T], *, key: Any = None, prefix: str | None = None
    ) -> AsyncGenerator[RowChange[T], None]:
        """Yield the rows of a key or a prefix, then ``ready``, and then each change, without end.

        After a break it connects again, and goes on behind the last change that it told. Where that
        was too long ago, ``reset`` is told, and the rows come again. It gives up after
        ``ClientLimits.attempts`` failures in a row.
        """
        path = f"/v1/tables/{quote(table.name, safe='')}/changes"
        following = _Following(
            path + _chosen(table.record.schema, key=key, prefix=prefix),
            self._codec(table, most=self._wire.limits.answer_bytes).decode,
        )
        async with aclosing(self._followed(following)) as changes:
            async for change in changes:
                yield change

    async def value_changes(
        self,
        service: Service,
        *,
        key: Any = None,
        prefix: str | None = None,
        state: str | None = None,
    ) -> AsyncGenerator[RowChange[Any], None]:
        """Yield what a service remembers for a key or a prefix, and then each change of it.

        As ``changes`` does of a table. ``state`` is the name of the state, where the service has
        several. The gateway looks at some moments (``serving.watch_interval``): several changes of
        a value between two of them are one.
        """
        spec = state_of(service, state)
        path = f"/v1/states/{quote(service.name, safe='')}/{quote(spec.name, safe='')}/changes"
        query = _chosen(service.reads[0].record.schema, key=key, prefix=prefix)
        following = _Following(path + query, partial(read_value, spec))
        async with aclosing(self._followed(following)) as changes:
            async for change in changes:
                yield change

    @overload
    def sql_changes(self, query: str) -> AsyncGenerator[RowChange[dict[str, Any]], None]: ...
    @overload
    def sql_changes(self, query: str, *, into: type[T]) -> AsyncGenerator[RowChange[T], None]: ...
    async def sql_changes(
        self, query: str, *, into: type[Any] | None = None
    ) -> AsyncGenerator[RowChange[Any], None]:
        """Yield the rows of a SELECT, as ``sql`` has them, and then each change of one.

        As ``value_changes`` does of a state. Its changes have no ``key``: the row says which it is.
        """
        kind: Any = dict[str, Any] if into is None else into
        target = f"/v1/sql/changes?{urlencode({'query': query})}"
        following = _Following(target, partial(read_json, msgspec.json.Decoder(kind)))
        async with aclosing(self._followed(following)) as changes:
            async for change in changes:
                yield change

    async def _followed(self, following: "_Following") -> AsyncGenerator[RowChange[Any], None]:
        """Yield what is told, over all connections."""
        changes = over_breaks(
            partial(self._events, following), following.take, retries=self._wire.retries
        )
        async with aclosing(changes):
            async for change in changes:
                yield change

    async def _events(self, following: "_Following") -> AsyncGenerator[Event, None]:
        following.begin()
        headers = {"Accept": "text/event-stream"}
        if following.last_id:
            headers["Last-Event-ID"] = following.last_id
        request = Request(
            method="GET",
            target=following.target,
            headers=headers,
            silence_seconds=_SILENCE_SECONDS,
        )
        async with aclosing(events_of(self._wire, request)) as events:
            async for event in events:
                yield event


class SyncChanges(SyncAsking):
    """The same, for callers without an event loop."""

    _changes: Changes

    def changes(
        self, table: Table[T], *, key: Any = None, prefix: str | None = None
    ) -> Generator[RowChange[T], None, None]:
        """See ``Client.changes``."""
        return self._loop.each(self._changes.changes(table, key=key, prefix=prefix))

    def value_changes(
        self,
        service: Service,
        *,
        key: Any = None,
        prefix: str | None = None,
        state: str | None = None,
    ) -> Generator[RowChange[Any], None, None]:
        """See ``Client.value_changes``."""
        return self._loop.each(
            self._changes.value_changes(service, key=key, prefix=prefix, state=state)
        )

    @overload
    def sql_changes(self, query: str) -> Generator[RowChange[dict[str, Any]], None, None]: ...
    @overload
    def sql_changes(self, query: str, *, into: type[T]) -> Generator[RowChange[T], None, None]: ...
    def sql_changes(
        self, query: str, *, into: type[Any] | None = None
    ) -> Generator[RowChange[Any], None, None]:
        """See ``Client.sql_changes``."""
        kind: Any = dict[str, Any] if into is None else into
        return self._loop.each(self._changes.sql_changes(query, into=kind))


class _Following:
    """How far one has listened, over all connections; without I/O."""

    def __init__(self, target: str, read: Callable[[bytes], Any]) -> None:
        self.target = target
        self.last_id = ""
        """The event to go on behind; empty: from the beginning."""
        self._read = read
        self._again = self._begun = False

    def begin(self) -> None:
        """Begin on another connection."""
        self._again = self._begun

    def take(self, event: Event) -> list[RowChange[Any]]:
        """Return what an event tells."""
        told = read_json(_TOLD, event.data.encode())
        found: list[RowChange[Any]] = []
        self._begun = True
        if self._again and event.kind in ("row", "ready"):
            self._again = False
            if not told.resumed:  # what happened meanwhile is not known: the rows come again
                self.last_id = ""
                found.append(RowChange(kind="reset"))
            elif event.kind == "ready":
                self.last_id = event.id or self.last_id
                return []
        self.last_id = event.id or self.last_id
        if event.kind == "row":
            found.append(RowChange(kind="row", key=told.key, value=self._row(told.value)))
        elif event.kind == "ready":
            found.append(RowChange(kind="ready"))
        elif event.kind == "change":
            value, before = self._row(told.value), self._row(told.before)
            found.append(RowChange(kind="change", key=told.key, value=value, before=before))
        return found

    def _row(self, raw: msgspec.Raw) -> Any:
        return None if bytes(raw) == _NULL else self._read(bytes(raw))


def _chosen(schema: Schema, *, key: Any, prefix: str | None) -> str:
    """Return of which rows the changes are asked for, as a query."""
    asked = {} if key is None else {"key": key_text(schema, key)}
    asked |= {} if prefix is None else {"prefix": prefix}
    return f"?{urlencode(asked)}" if asked else ""
