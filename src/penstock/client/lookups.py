"""Questions out: rows of tables and values of states, each with its position and its age."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from penstock.client.answers import AtLeast, Found, Positions
from penstock.client.asking import Asking, SyncAsking
from penstock.client.connection import Request
from penstock.client.naming import freshness, key_text, range_query, read_value, state_of
from penstock.client.refusals import error_of, read_json
from penstock.core.graph.data import Table
from penstock.core.graph.parts import Service

__all__ = ["Lookups", "SyncLookups"]

T = TypeVar("T")
Span = str | timedelta | None

_OK, _NOT_FOUND = 200, 404
_MISSING = frozenset({"row.missing", "value.missing"})


class _Answer(msgspec.Struct):
    """What a gateway says of one key, or why it says nothing."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    positions: dict[str, dict[int, int]] = {}
    stale_seconds: float | None = None
    stale: bool = False
    code: str = ""


class _Entry(msgspec.Struct):
    key: str
    value: msgspec.Raw


class _Page(msgspec.Struct):
    rows: list[_Entry]
    next: str | None
    positions: dict[str, dict[int, int]]
    stale_seconds: float | None
    stale: bool = False


_ANSWER = msgspec.json.Decoder(_Answer)
_PAGE = msgspec.json.Decoder(_Page)


class Lookups(Asking):
    """The requests that ask for rows of tables, and for values of states."""

    async def get(
        self,
        table: Table[T],
        key: Any,
        *,
        at_least: AtLeast = (),
        max_stale: Span = None,
        wait: Span = None,
    ) -> Found[T | None]:
        """Return the row of a key; its ``value`` is None where there is none.

        ``key`` is the value of the key field, or a tuple where there are several. ``at_least``
        waits until these records are in the answer, for ``wait`` at most; ``max_stale`` refuses an
        older one. Both raise a TransientError where that was not to be had.
        """
        asked = freshness(table, at_least=at_least, max_stale=max_stale, wait=wait)
        path = f"/v1/tables/{quote(table.name, safe='')}/rows"
        text = key_text(table.record.schema, key)
        return await self._one(path, text, asked, self._row(table))

    async def scan(
        self,
        table: Table[T],
        *,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        page: int | None = None,
        at_least: AtLeast = (),
        max_stale: Span = None,
    ) -> AsyncGenerator[Found[T], None]:
        """Yield the rows of a range of keys, in the order of their keys' texts.

        ``start`` is in the range, ``end`` is not. They are asked for in pages of ``page`` rows;
        each page is of its own moment, which its positions tell.
        """
        asked = freshness(table, at_least=at_least, max_stale=max_stale, wait=None)
        asked |= range_query(prefix=prefix, start=start, end=end, page=page)
        path = f"/v1/tables/{quote(table.name, safe='')}/rows"
        async with aclosing(self._pages(path, asked, self._row(table))) as found:
            async for row in found:
                yield row

    async def value(
        self,
        service: Service,
        key: Any,
        *,
        state: str | None = None,
        at_least: AtLeast = (),
        max_stale: Span = None,
        wait: Span = None,
    ) -> Found[Any]:
        """Return what a service remembers for a key: a value, a list, or a dict, or None.

        ``state`` is the name of the state, where the service has several. With ``at_least=`` what
        ``send`` returned, the answer has what the service made of that record.
        """
        spec = state_of(service, state)
        asked = freshness(service, at_least=at_least, max_stale=max_stale, wait=wait)
        path = f"/v1/states/{quote(service.name, safe='')}/{quote(spec.name, safe='')}/values"
        text = key_text(service.reads[0].record.schema, key)
        return await self._one(path, text, asked, partial(read_value, spec))

    async def values(
        self,
        service: Service,
        *,
        state: str | None = None,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        page: int | None = None,
        at_least: AtLeast = (),
        max_stale: Span = None,
    ) -> AsyncGenerator[Found[Any], None]:
        """Yield what a service remembers for a range of keys, as ``scan`` does for a table."""
        spec = state_of(service, state)
        asked = freshness(service, at_least=at_least, max_stale=max_stale, wait=None)
        asked |= range_query(prefix=prefix, start=start, end=end, page=page)
        path = f"/v1/states/{quote(service.name, safe='')}/{quote(spec.name, safe='')}/values"
        async with aclosing(self._pages(path, asked, partial(read_value, spec))) as found:
            async for value in found:
                yield value

    async def _one(
        self, path: str, key: str, asked: Mapping[str, str], read: Callable[[bytes], Any]
    ) -> Found[Any]:
        target = _target(f"{path}/{quote(key, safe='')}", asked)
        request = Request(method="GET", target=target)
        reply = await self._wire.ask(request, good=frozenset({_OK, _NOT_FOUND}))
        answer = read_json(_ANSWER, reply.body)
        if reply.status == _NOT_FOUND and answer.code not in _MISSING:
            raise error_of(reply.status, reply.body)
        return Found(
            key=key,
            value=None if reply.status == _NOT_FOUND else read(bytes(answer.value)),
            positions=answer.positions,
            stale_seconds=answer.stale_seconds,
            stale=answer.stale,
        )

    async def _pages(
        self, path: str, asked: dict[str, str], read: Callable[[bytes], Any]
    ) -> AsyncGenerator[Found[Any], None]:
        while True:
            reply = await self._wire.ask(Request(method="GET", target=_target(path, asked)))
            page = read_json(_PAGE, reply.body)
            positions: Positions = page.positions
            for row in page.rows:
                yield Found(
                    key=row.key,
                    value=read(bytes(row.value)),
                    positions=positions,
                    stale_seconds=page.stale_seconds,
                    stale=page.stale,
                )
            if page.next is None:
                return
            asked = {**asked, "after": page.next}

    def _row(self, table: Table[T]) -> Callable[[bytes], T]:
        return self._codec(table, most=self._wire.limits.answer_bytes).decode


class SyncLookups(SyncAsking):
    """The same, for callers without an event loop."""

    _lookups: Lookups

    def get(
        self,
        table: Table[T],
        key: Any,
        *,
        at_least: AtLeast = (),
        max_stale: Span = None,
        wait: Span = None,
    ) -> Found[T | None]:
        """See ``Client.get``."""
        asked = {"at_least": at_least, "max_stale": max_stale, "wait": wait}
        return self._loop.run(self._lookups.get(table, key, **asked))  # type: ignore[arg-type]

    def scan(
        self,
        table: Table[T],
        *,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        page: int | None = None,
        at_least: AtLeast = (),
        max_stale: Span = None,
    ) -> Generator[Found[T], None, None]:
        """See ``Client.scan``."""
        return self._loop.each(
            self._lookups.scan(
                table,
                prefix=prefix,
                start=start,
                end=end,
                page=page,
                at_least=at_least,
                max_stale=max_stale,
            )
        )

    def value(
        self,
        service: Service,
        key: Any,
        *,
        state: str | None = None,
        at_least: AtLeast = (),
        max_stale: Span = None,
        wait: Span = None,
    ) -> Found[Any]:
        """See ``Client.value``."""
        return self._loop.run(
            self._lookups.value(
                service, key, state=state, at_least=at_least, max_stale=max_stale, wait=wait
            )
        )

    def values(
        self,
        service: Service,
        *,
        state: str | None = None,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        page: int | None = None,
        at_least: AtLeast = (),
        max_stale: Span = None,
    ) -> Generator[Found[Any], None, None]:
        """See ``Client.values``."""
        return self._loop.each(
            self._lookups.values(
                service,
                state=state,
                prefix=prefix,
                start=start,
                end=end,
                page=page,
                at_least=at_least,
                max_stale=max_stale,
            )
        )


def _target(path: str, asked: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(asked)}" if asked else path
