"""The way to a gateway: connections that are kept, and requests that are tried again."""

import asyncio
import random
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from penstock import __version__
from penstock.client.connection import Address, Answer, Connection, Request
from penstock.client.limits import ClientLimits
from penstock.client.refusals import REPEATABLE, error_of, retry_after
from penstock.client.retrying import Retries
from penstock.errors import ConfigurationError, PenstockError, TransientError

__all__ = ["Reply", "Token", "Wire", "address_of"]

Token = str | Callable[[], str]
"""A token, or what gives one that is valid now."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that has come whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def address_of(url: str, *, ca_file: str = "") -> Address:
    """Return the address that a URL names; ConfigurationError ``client.url``."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise _no_url(url, str(error)) from error
    if not port or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise _no_url(url, "it must be http(s)://HOST[:PORT][/PATH]")
    base = parts.path.rstrip("/")
    if not base.isascii() or any(character <= " " for character in base):
        raise _no_url(url, "its path is to be percent-encoded")
    tls = _trust(ca_file) if parts.scheme == "https" else None
    return Address(parts.hostname, port, base, tls)


def _no_url(url: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"{url!r} is no address of a gateway", code="client.url", detail=why)


def _trust(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigurationError(
            f"the authorities in {ca_file} cannot be used",
            code="client.certificate",
            detail=str(error),
            hint="ca_file is a PEM file with certificates",
        ) from error


class Wire:
    """Sends the requests of one client, for one event loop."""

    def __init__(self, address: Address, *, token: Token | None, limits: ClientLimits) -> None:
        self._address = address
        self._token = token
        self.limits = limits
        self.retries = Retries(limits, random.SystemRandom().random)
        self._room = asyncio.Semaphore(limits.connections)
        self._idle: list[tuple[float, Connection]] = []
        self._open: set[Connection] = set()
        self._closed = False

    async def ask(self, request: Request, *, good: frozenset[int] = frozenset({200})) -> Reply:
        """Return the answer to a request that may be sent again; else raise what it says."""
        began, failures = time.monotonic(), 0
        patience = self.limits.patience.total_seconds()
        while True:
            asked = 0.0
            try:
                async with asyncio.timeout(patience - (time.monotonic() - began)):
                    reply = await self._once(request)
            except TimeoutError:
                raise TransientError(
                    f"no answer within {patience:g}s", code="client.timeout"
                ) from None
            except TransientError as error:
                failed: PenstockError = error
            else:
                if reply.status in good:
                    return reply
                failed = error_of(reply.status, reply.body)
                if reply.status not in REPEATABLE:
                    raise failed
                asked = retry_after(reply.headers)
            failures += 1
            wait = self.retries.wait(failures, passed=time.monotonic() - began, asked=asked)
            if wait is None or failed.code == "client.too-large":
                raise failed
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncGenerator[Answer, None]:
        """Send a request once, and give its answer as it comes."""
        async with self._room:
            connection = await self._connection()
            try:
                yield await connection.ask(self._headed(request), self._address)
            except BaseException:
                connection.abort()
                self._open.discard(connection)
                raise
            if connection.reusable and not self._closed:
                self._idle.append((time.monotonic(), connection))
            else:
                await self._end(connection)

    async def close(self) -> None:
        """End all connections; requests under way fail."""
        self._closed = True
        self._idle.clear()
        for connection in list(self._open):
            await self._end(connection)

    async def _once(self, request: Request) -> Reply:
        async with self.open(request) as answer:
            body = await answer.whole(most=self.limits.answer_bytes)
            return Reply(answer.status, answer.headers, body)

    async def _connection(self) -> Connection:
        if self._closed:
            raise ConfigurationError("the client is closed", code="client.closed")
        oldest = time.monotonic() - self.limits.idle_timeout.total_seconds()
        while self._idle:
            used_at, kept = self._idle.pop()
            if used_at > oldest and kept.reusable:
                return kept
            await self._end(kept)
        connection = await Connection.open(
            self._address,
            seconds=self.limits.connect_timeout.total_seconds(),
            silence=self.limits.silence_timeout.total_seconds(),
        )
        self._open.add(connection)
        return connection

    async def _end(self, connection: Connection) -> None:
        self._open.discard(connection)
        await connection.close()

    def _headed(self, request: Request) -> Request:
        headers = {"User-Agent": f"penstock/{__version__}", **request.headers}
        if self._token is not None:
            token = self._token() if callable(self._token) else self._token
            headers["Authorization"] = f"Bearer {_plain(token)}"
        return replace(request, headers=headers)


def _plain(token: str) -> str:
    """Return a token that is one word of a header; the error does not show it."""
    if token and token.isascii() and token.isprintable() and " " not in token:
        return token
    raise ConfigurationError(
        "the token is no token",
        code="client.token",
        detail="it is empty, or has other characters than visible ASCII",
    )
