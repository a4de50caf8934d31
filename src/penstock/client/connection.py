"""One connection to a gateway: HTTP/1.1, one request after the other, both directions at once.

An answer may begin while the body of its request is still on its way: so lines are acknowledged
while they are sent, and memory is bounded on both sides.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httptools

from penstock.errors import ConfigurationError, TransientError

__all__ = ["Address", "Answer", "Connection", "Request", "broken"]

_READ_BYTES = 256 << 10
_HEAD_BYTES = 64 << 10
"""The largest head of an answer."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a gateway is; ``base`` is what its paths begin with, behind a proxy."""

    host: str
    port: int
    base: str = ""
    tls: ssl.SSLContext | None = None

    @property
    def name(self) -> str:
        """Return the host as requests name it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request; a body of several pieces is sent as they come, and cannot be sent again."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""
    silence_seconds: float | None = None
    """How long nothing may come; None: as usual."""


class Answer:
    """The answer to one request; its body is read in pieces, as it comes."""

    def __init__(self, pieces: Callable[[], AsyncGenerator[bytes, None]]) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.pieces = pieces

    async def whole(self, *, most: int) -> bytes:
        """Return the body; TransientError ``client.too-large``: it has more bytes than that."""
        found: list[bytes] = []
        size = 0
        async for piece in self.pieces():
            size += len(piece)
            if size > most:
                raise TransientError(
                    f"the answer has more than {most} bytes",
                    code="client.too-large",
                    hint="ask for less at a time, or raise ClientLimits.answer_bytes",
                )
            found.append(piece)
        return b"".join(found)


class Connection:
    """A connection that is open; for one request at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, silence: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._usual = self._silence = silence
        self._parser: Any = None
        self._answer: Answer | None = None
        self._came: list[bytes] = []
        self._head_bytes = 0
        self._headed = False
        self._complete = True
        self._lost = False
        self._keeps = True
        self._sending: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, address: Address, *, seconds: float, silence: float) -> "Connection":
        """Connect; TransientError ``client.unreachable`` where nobody answers."""
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(
                    address.host, address.port, ssl=address.tls
                )
        except ssl.SSLCertVerificationError as error:
            raise ConfigurationError(
                f"the certificate of {address.name} is not to be trusted",
                code="client.certificate",
                detail=error.verify_message,
                hint="give the client the certificate's authority: ca_file=...",
            ) from error
        except (OSError, TimeoutError) as error:
            raise TransientError(
                f"no gateway at {address.name}",
                code="client.unreachable",
                detail=str(error) or f"no connection within {seconds:g}s",
                hint="`penstock status` shows where it listens",
            ) from error
        return cls(reader, writer, silence=silence)

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent."""
        sent = self._sending is None or self._sending.done()
        ended = self._lost or self._reader.at_eof() or self._writer.is_closing()
        return self._complete and sent and self._keeps and not ended

    async def ask(self, request: Request, address: Address) -> Answer:
        """Send a request, and return its answer when the head has come."""
        self._parser = httptools.HttpResponseParser(self)
        self._answer = answer = Answer(self._pieces)
        self._silence = request.silence_seconds or self._usual
        self._complete = self._headed = False
        self._head_bytes = 0
        try:
            self._writer.write(_head(request, address))
            if isinstance(request.body, bytes):
                self._writer.write(request.body)
                await self._drain()
            else:
                self._sending = asyncio.create_task(self._send(request.body))
            while not self._headed:
                await self._read()
        except OSError as error:
            raise broken(str(error)) from error
        return answer

    async def close(self) -> None:
        """End it."""
        if self._sending is not None:
            self._sending.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._sending
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                await self._writer.wait_closed()

    def abort(self) -> None:
        """End it at once, whatever is under way."""
        if self._sending is not None:
            self._sending.cancel()
        self._writer.transport.abort()

    async def _send(self, pieces: AsyncIterator[bytes]) -> None:
        """Send a body in chunks, as fast as the gateway takes them."""
        async for piece in pieces:
            if self._lost:
                return
            if piece:
                self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                await self._drain()
        self._writer.write(b"0\r\n\r\n")
        await self._drain()

    async def _drain(self) -> None:
        """Wait until there is room; what ended the connection is for the reading side to say.

        A gateway that refuses a body may answer, and end, before it has come.
        """
        try:
            await self._writer.drain()
        except OSError:
            self._lost = True

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        while True:
            came, self._came = self._came, []
            for piece in came:
                yield piece
            if self._complete:
                await self._sent()
                return
            await self._read()

    async def _sent(self) -> None:
        """Raise what ended the sending of the body, if anything did."""
        if self._sending is not None and self._sending.done():
            await self._sending

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(self._silence):
                data = await self._next()
        except TimeoutError as error:
            raise TransientError(
                f"the gateway sent nothing for {self._silence:g}s", code="client.silence"
            ) from error
        except OSError as error:
            raise broken(str(error)) from error
        if not data:
            raise broken("it ended in the middle of an answer")
        if not self._headed:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise broken(f"the answer is not HTTP: {error}") from error
        if not self._headed and self._head_bytes > _HEAD_BYTES:
            raise broken(f"the head of the answer has more than {_HEAD_BYTES} bytes")

    async def _next(self) -> bytes:
        """Return what comes next; a body that cannot be sent ends the wait."""
        sending = self._sending
        if sending is None:
            return await self._reader.read(_READ_BYTES)
        if sending.done():
            self._sending = None
            await sending
            return await self._reader.read(_READ_BYTES)
        reading = asyncio.create_task(self._reader.read(_READ_BYTES))
        try:
            await asyncio.wait({reading, sending}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done() and sending.done() and sending.exception() is not None:
                self._sending = None
                await sending
            return await reading
        finally:
            reading.cancel()

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        if self._answer is not None:
            self._answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """End the head; what is only on the way (1xx) is no answer."""
        status = self._parser.get_status_code()
        if self._answer is not None and status >= HTTPStatus.OK:
            self._answer.status = status
            self._headed = True

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._came.append(body)

    def on_message_complete(self) -> None:
        """End the answer."""
        self._complete = self._headed
        self._keeps = self._parser.should_keep_alive()


def broken(why: str) -> TransientError:
    """Return the error of a connection that failed."""
    return TransientError("the connection to the gateway broke", code="client.broken", detail=why)


def _head(request: Request, address: Address) -> bytes:
    lines = [f"{request.method} {address.base}{request.target} HTTP/1.1", f"Host: {address.name}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    if not isinstance(request.body, bytes):
        lines.append("Transfer-Encoding: chunked")
    elif request.body or request.method == "POST":
        lines.append(f"Content-Length: {len(request.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
