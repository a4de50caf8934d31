"""Records in: one, several at once, or a stream of them."""

import uuid
from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable
from contextlib import aclosing
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from penstock.client.answers import Sent
from penstock.client.asking import Asking, SyncAsking
from penstock.client.connection import Answer, Request, broken
from penstock.client.refusals import error_of, mistake_of, read_json
from penstock.core.graph.data import Stream
from penstock.core.records.codec import JsonCodec
from penstock.errors import PenstockError

__all__ = ["Records", "SyncRecords"]

T = TypeVar("T")

_JSON = "application/json"
_NDJSON = "application/x-ndjson"
_CREATED = frozenset({201})
_PIECE_BYTES = 64 << 10
"""Records of a stream are sent together up to so many bytes, where they are there already."""


class _Stand(msgspec.Struct):
    partition: int
    offset: int


class _Stands(msgspec.Struct):
    records: list[_Stand]


class _Line(msgspec.Struct):
    """A line of the answer to a stream: for one record, or the last one."""

    line: int = 0
    partition: int = -1
    offset: int = -1
    error: dict[str, Any] | None = None
    accepted: int = -1
    problem: dict[str, Any] | None = None


_ONE = msgspec.json.Decoder(_Stand)
_SEVERAL = msgspec.json.Decoder(_Stands)
_LINE = msgspec.json.Decoder(_Line)


class Records(Asking):
    """The requests that put records on streams."""

    async def send(self, stream: Stream[T], record: T, *, once: bool = True) -> Sent:
        """Put a record on a stream, and return where it stands.

        It is on the log once, however often it had to be sent. ``once=False`` is several times
        as fast, and a record that had to be sent again may be there twice.
        """
        headers = {"Content-Type": _JSON}
        if once:
            headers |= _key()
        body = self._codec(stream).encode_valid(record)
        request = Request(method="POST", target=_path(stream), headers=headers, body=body)
        reply = await self._wire.ask(request, good=_CREATED)
        return _sent(stream, read_json(_ONE, reply.body))

    async def send_many(self, stream: Stream[T], records: Iterable[T]) -> list[Sent]:
        """Put several records on a stream, all or none, and return where they stand.

        They are on the log once, however often they had to be sent. A gateway takes
        ``serving.batch_records`` of them at a time.
        """
        encode = self._codec(stream).encode_valid
        body = b"[" + b",".join(encode(record) for record in records) + b"]"
        headers = {"Content-Type": _JSON, **_key()}
        request = Request(method="POST", target=_path(stream), headers=headers, body=body)
        reply = await self._wire.ask(request, good=_CREATED)
        return [_sent(stream, stand) for stand in read_json(_SEVERAL, reply.body).records]

    async def stream(
        self, stream: Stream[T], records: Iterable[T] | AsyncIterable[T]
    ) -> AsyncGenerator[Sent | PenstockError, None]:
        """Put any number of records on a stream; yield for each, in order, what became of it.

        What is wrong with a record is yielded in its place, and the others go on. Memory is
        bounded: records are taken as fast as their acknowledgements are. Nothing is sent again: if
        the connection breaks, that is raised, and records without an acknowledgement may be on the
        log or not.
        """
        request = Request(
            method="POST",
            target=_path(stream),
            headers={"Content-Type": _NDJSON},
            body=_lines(self._codec(stream, most=self._wire.limits.answer_bytes), records),
        )
        async with self._wire.open(request) as answer:
            if answer.status != 200:  # noqa: PLR2004 - OK
                raise error_of(
                    answer.status, await answer.whole(most=self._wire.limits.answer_bytes)
                )
            async with aclosing(_answered(answer, self._wire.limits.answer_bytes)) as lines:
                async for line in lines:
                    if line.accepted >= 0:
                        if line.problem is not None:
                            raise _ended(line.problem)
                        return
                    if line.error is not None:
                        yield mistake_of(line.error)
                    else:
                        yield Sent(stream.topic.name, line.partition, line.offset)
            raise broken("it ended before the last line of the answer")


class SyncRecords(SyncAsking):
    """The same, for callers without an event loop."""

    _records: Records

    def send(self, stream: Stream[T], record: T, *, once: bool = True) -> Sent:
        """See ``Client.send``."""
        return self._loop.run(self._records.send(stream, record, once=once))

    def send_many(self, stream: Stream[T], records: Iterable[T]) -> list[Sent]:
        """See ``Client.send_many``."""
        return self._loop.run(self._records.send_many(stream, records))

    def stream(
        self, stream: Stream[T], records: Iterable[T]
    ) -> Generator[Sent | PenstockError, None, None]:
        """See ``Client.stream``; the records are taken in another thread."""
        return self._loop.each(self._records.stream(stream, records))


def _key() -> dict[str, str]:
    return {"Idempotency-Key": uuid.uuid4().hex}


def _path(stream: Stream[Any]) -> str:
    return f"/v1/streams/{quote(stream.name, safe='')}/records"


def _sent(stream: Stream[Any], stand: _Stand) -> Sent:
    return Sent(stream.topic.name, stand.partition, stand.offset)


def _ended(document: dict[str, Any]) -> PenstockError:
    """Return what ended a stream of records early."""
    status = document.get("status")
    known = status if isinstance(status, int) else 503
    return error_of(known, msgspec.json.encode(document))


async def _lines(
    codec: JsonCodec[T], records: Iterable[T] | AsyncIterable[T]
) -> AsyncGenerator[bytes, None]:
    """Yield records as lines, several together where they are there already."""
    if isinstance(records, AsyncIterable):
        async for record in records:
            yield codec.encode(record) + b"\n"
        return
    piece = bytearray()
    for record in records:
        piece += codec.encode(record)
        piece += b"\n"
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


async def _answered(answer: Answer, most: int) -> AsyncGenerator[_Line, None]:
    """Yield the lines of an answer as they come."""
    rest = b""
    async for piece in answer.pieces():
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > most:
            raise broken("a line of the answer is too long")
        for line in whole:
            yield read_json(_LINE, line)
