"""A small HTTP server for pages made from memory: GET or HEAD, one answer, the connection ends.

Clients may be slow, silent or many. So a request has a deadline from its first byte to the last of
the answer, a head has a maximum size, and the number of connections is limited: one more closes the
oldest, which is never one that sent its request at once. Only requests for a name of this machine
are answered, so a page in a browser cannot use a name that it has pointed here (DNS rebinding).
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from penstock.core.printable import printable
from penstock.machine.ports import LOOPBACK

__all__ = ["LOOPBACK_NAMES", "Answer", "PageServer", "answered"]

CONNECTIONS = 32
"""The most connections that are open at once."""
REQUEST_SECONDS = 5.0
"""How long a connection may take in total."""
HEAD_BYTES = 8 << 10
"""The request line and the headers of one request."""
LOOPBACK_NAMES = frozenset({LOOPBACK, "localhost", "::1"})

_HEAD = "HEAD"
_HEAD_END = b"\r\n\r\n"
_WORDS = 3
_PAUSE_SECONDS = 1.0
"""The wait after the machine refused a connection, for example with too many open files."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request gets."""

    status: HTTPStatus
    kind: str
    body: bytes

    def encoded(self, *, with_body: bool = True) -> bytes:
        """Return the answer as HTTP; nothing that a browser should guess at, run or keep.

        An answer to HEAD is without its body, and says how long that would be.
        """
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: {self.kind}\r\n"
            f"Content-Length: {len(self.body)}\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "Cache-Control: no-store\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + (self.body if with_body else b"")


Pages = Callable[[str], Answer]
"""From a path to what it gets; asked once for each request."""


def answered(head: bytes, pages: Pages, *, hosts: Collection[str]) -> Answer:
    """Return the answer to the head of a request, without the empty line that ends it."""
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    headers = [line.partition(":") for line in rest]
    named = [value.strip() for name, _, value in headers if name.strip().lower() == "host"]
    if len(words) != _WORDS or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
        return _refusal(HTTPStatus.BAD_REQUEST, "this is not a request")
    # Every browser names the host; so does every client of HTTP/1.1.
    if len(named) != 1 and (named or words[2] != "HTTP/1.0"):
        return _refusal(HTTPStatus.BAD_REQUEST, "it must name exactly one host")
    if named and _host(named[0]) not in hosts:
        known = "a name of this machine, or one of http.hosts"
        return _refusal(HTTPStatus.MISDIRECTED_REQUEST, f"the host must be {known}")
    if words[0] not in {"GET", _HEAD}:
        return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD")
    # Not urlsplit: a target that begins with // is a path, not the name of a host.
    return pages(words[1].partition("?")[0].partition("#")[0])


def _host(text: str) -> str:
    try:
        return (urlsplit(f"//{text}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _refusal(status: HTTPStatus, text: str) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", f"{text}\n".encode())


class PageServer:
    """Serves pages on a socket that listens, in a thread, while the block runs.

    ``note`` is called once when the machine accepts no more connections; serving goes on later.
    """

    def __init__(
        self,
        listening: socket.socket,
        pages: Pages,
        *,
        hosts: Collection[str] = LOOPBACK_NAMES,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._listening = listening
        self._pages = pages
        self._hosts = frozenset(host.lower() for host in hosts)
        self._note = note
        self._open: dict[asyncio.Task[None], socket.socket] = {}
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="status-page", daemon=True)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._listening.settimeout(0)
        accepting = asyncio.create_task(self._accept())
        await self._end.wait()
        ending = [accepting, *self._open]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listening)
            except OSError as error:
                self._tell(error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            connection.settimeout(0)
            if len(self._open) >= CONNECTIONS:
                oldest = next(iter(self._open))
                oldest.cancel()
                await asyncio.wait([oldest])
            task = asyncio.create_task(self._talk(connection))
            self._open[task] = connection
            task.add_done_callback(self._close)

    def _close(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task).close()

    async def _talk(self, connection: socket.socket) -> None:
        # It may be too slow, it may go, and another one may need its place.
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(REQUEST_SECONDS):
                head = b""
                while _HEAD_END not in head and len(head) <= HEAD_BYTES:
                    more = await self._loop.sock_recv(connection, HEAD_BYTES)
                    if not more:
                        return
                    head += more
                with_body = not head.startswith(f"{_HEAD} ".encode())
                answer = self._answer(head).encoded(with_body=with_body)
                await self._loop.sock_sendall(connection, answer)
                connection.shutdown(socket.SHUT_WR)
                # What is closed with bytes unread is reset, and with it the answer.
                while await self._loop.sock_recv(connection, HEAD_BYTES):
                    pass

    def _answer(self, received: bytes) -> Answer:
        head, end, _ = received.partition(_HEAD_END)
        if not end or len(head) > HEAD_BYTES:
            text = f"more than {HEAD_BYTES} bytes before the end of the headers"
            return _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)
        try:
            return answered(head, self._pages, hosts=self._hosts)
        except Exception as error:  # noqa: BLE001 - the client gets any error
            text = printable(f"{type(error).__name__}: {error}")
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR, text)

    def _tell(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            self._note(
                f"the status page accepts no connections at the moment: {error.strerror or error}"
            )
